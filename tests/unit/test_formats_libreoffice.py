"""A workbook as LibreOffice reads it: a reader that shares no code with those of the other tests."""

import csv
import datetime as dt

import pytest

from exports.contracts import CellType, Format
from tests import libreoffice
from tests.unit.formats_files import Exported, columns, exported, in_pages, keyed, serial, specification

KINDS = [
    CellType.IDENTIFIER,
    CellType.TEXT,
    CellType.DATETIME,
    CellType.DATE,
    (CellType.MONEY, 2),
    CellType.BOOLEAN,
    CellType.INTEGER,
]
TIME = serial(dt.datetime.fromisoformat("2026-09-01T08:30:00"))
ROWS = [
    ["1", "004500", "=1+1", TIME, "2026-09-01", "1234.50", "true", "3"],
    [
        "2",
        "2026091400012345678",
        "甲\r\n乙",
        "1899-12-29 10:00:00+08",
        "1899-12-29",
        "-0.10",
        "false",
        "1234567890123456",
    ],
    ["3", "", "_x0041_ & <b> 😀", "", "", "", "", ""],
    ["4", "+8613900000000", "  a\x0b", TIME, "9999-12-31", "0.00", "true", "0"],
]
SHOWN = [
    ["1", "004500", "=1+1", "2026-09-01 08:30:00", "2026-09-01", "1234.50", "TRUE", "3"],
    [
        "2",
        "2026091400012345678",
        "甲\n乙",
        "1899-12-29T10:00:00+08:00",
        "1899-12-29",
        "-0.10",
        "FALSE",
        "1234567890123456",
    ],
    ["3", "", "_x0041_ & <b> 😀", "", "", "", "", ""],
    ["4", "+8613900000000", "  a\ufffd", "2026-09-01 08:30:00", "9999-12-31", "0.00", "TRUE", "0"],
]
# Cells as they are shown (token 8), every sheet into a file of its own (12). Source: "Filter Options for CSV", LibreOffice Help.
FILTER = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,true,false,false,-1"


@pytest.mark.libreoffice
def test_libreoffice_shows_what_was_exported(tmp_path):
    spec = specification(columns(*KINDS), format=Format.XLSX, sheet_rows=4, sheet_title="orders")
    (tmp_path / "book.xlsx").write_bytes(Exported(spec, [in_pages(ROWS, 4)]).data)
    libreoffice.convert(tmp_path / "book.xlsx", FILTER)
    sheets = []
    for name in ("orders", "orders_2"):
        with (tmp_path / f"book-{name}.csv").open(encoding="utf-8", newline="") as file:
            sheets.append(list(csv.reader(file, strict=True)))
    header = [column.zh for column in columns(*KINDS)]
    assert sheets == [[header, *SHOWN[:3]], [header, SHOWN[3]]]


@pytest.mark.libreoffice
def test_libreoffice_takes_no_text_for_a_control_character(tmp_path):
    """LibreOffice 7.4 also decodes `_xH_` with fewer than four digits, if that gives a control character."""
    texts = ["a_x007_b", "_x7_", "_x1_x", "_x00_"]
    made = exported(columns(CellType.TEXT), keyed(*texts), format=Format.XLSX)
    (tmp_path / "book.xlsx").write_bytes(made.data)
    [[_, *rows]] = libreoffice.sheets(tmp_path / "book.xlsx")
    assert [row[1] for row in rows] == texts
