"""A workbook against the rules of Open XML, by a validator that is held to Microsoft's own SDK."""

import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest
from openxml_audit import FileFormat, OpenXmlValidator, ValidationSeverity

from exports.contracts import CellType, Column, Format
from tests.unit.formats_files import Exported, columns, in_pages, specification

KINDS = [kind if kind is not CellType.MONEY else (kind, 2) for kind in CellType]
CELLS = {
    CellType.INTEGER: "-3",
    CellType.DECIMAL: "7",
    CellType.MONEY: "1.50",
    CellType.FLOAT: "1e-07",
    CellType.BOOLEAN: "true",
    CellType.DATE: "2026-09-01",
    CellType.DATETIME: "46266.354166666664",
}
AWKWARD = ["a\x0bb", "x\r\ny\tz", "<&>\"'", "_x0041_ ]]>", "\ufffe\u2028😀", "=1+1", " ", "a" * 32_768]


def book(**changes: object) -> bytes:
    """Every type, each with a value and without; awkward text; a long number; three sheets."""
    columns_of = columns(*KINDS, CellType.TEXT)
    rows = [
        [str(number), *(CELLS.get(kind, text) for kind in CellType), text] for number, text in enumerate(AWKWARD, 1)
    ]
    rows += [["9", *[""] * (len(CellType) + 1)]]
    rows += [["12345678901234567890", *["1899-12-29" if kind is CellType.DATE else "" for kind in CellType], ""]]
    spec = specification(columns_of, **{"format": Format.XLSX, "sheet_rows": 5, **changes})
    return Exported(spec, [in_pages(rows, 4)]).data


def findings(path: Path) -> list[str]:
    """Errors against the schema of the newest Office, and against what the schema cannot say."""
    result = OpenXmlValidator(file_format=FileFormat.MICROSOFT_365, max_errors=50).validate(path)
    return [
        f"{error.part_uri} {error.path} {error.description}"
        for error in result.errors
        if error.severity is ValidationSeverity.ERROR
    ]


def changed(data: bytes, member: str, old: bytes, new: bytes) -> bytes:
    """The file with one thing in one member replaced."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as given, zipfile.ZipFile(out, "w") as made:
        for name in given.namelist():
            text = given.read(name)
            if name == member:
                assert old in text
                text = text.replace(old, new, 1)
            made.writestr(name, text)
    return out.getvalue()


@pytest.mark.parametrize("title", ["订单", "O'Brien & <Söhne>", "😀" * 40])
def test_a_workbook_of_every_type_breaks_no_rule(tmp_path: Path, title: str) -> None:
    (tmp_path / "book.xlsx").write_bytes(book(sheet_title=title))
    assert findings(tmp_path / "book.xlsx") == []


def test_an_empty_workbook_breaks_no_rule(tmp_path: Path) -> None:
    spec = specification(columns(*KINDS), format=Format.XLSX, header_language="en")
    (tmp_path / "book.xlsx").write_bytes(Exported(spec, []).data)
    assert findings(tmp_path / "book.xlsx") == []


@pytest.mark.parametrize(
    ("member", "old", "new"),
    [
        ("xl/worksheets/sheet1.xml", b't="b"', b't="boolean"'),
        ("xl/worksheets/sheet1.xml", b"<v>", b"<w>1</w><v>"),
        ("xl/worksheets/sheet1.xml", b'state="frozen"', b'state="cold"'),
        ("xl/styles.xml", b'<b val="1"></b>', b'<bold val="1"></bold>'),
        ("xl/workbook.xml", b"sheetId=", b"sheetNumber="),
    ],
)
def test_the_validator_finds_what_is_wrong(tmp_path: Path, member: str, old: bytes, new: bytes) -> None:
    (tmp_path / "book.xlsx").write_bytes(changed(book(), member, old, new))
    assert findings(tmp_path / "book.xlsx") != []


def test_every_style_of_a_cell_exists() -> None:
    with zipfile.ZipFile(io.BytesIO(book())) as archive:
        known = len(re.findall(rb"<xf ", archive.read("xl/styles.xml").partition(b"<cellXfs")[2]))
        used = {
            int(style)
            for name in archive.namelist()
            if "worksheets" in name
            for style in re.findall(rb'<c s="(\d+)"', archive.read(name))
        }
    assert used == set(range(1, known))


def test_every_sheet_prints_with_its_header_on_pages_as_wide_as_the_table() -> None:
    for sheet in openpyxl.load_workbook(io.BytesIO(book())).worksheets:
        setup = sheet.page_setup
        assert (setup.orientation, setup.paperSize, setup.fitToWidth, setup.fitToHeight) == ("landscape", 9, 1, 0)
        assert (sheet.sheet_properties.pageSetUpPr.fitToPage, sheet.print_title_rows) == (True, "$1:$1")
        assert sheet.oddFooter.center.text == "&P / &N"


def test_every_sheet_filters_and_freezes_its_own_rows() -> None:
    sheets = openpyxl.load_workbook(io.BytesIO(book())).worksheets
    assert [sheet.auto_filter.ref for sheet in sheets] == ["A1:P5", "A1:P5", "A1:P3"]
    assert [sheet.freeze_panes for sheet in sheets] == ["A2"] * 3
    assert all(cell.font.bold for sheet in sheets for cell in sheet[1])


def test_columns_are_as_wide_as_declared_and_never_too_narrow_for_a_date() -> None:
    made_of = [
        Column("key", "号", "ID", CellType.IDENTIFIER, width=9),
        Column("day", "日", "Day", CellType.DATE, width=4),
        Column("time", "时", "Time", CellType.DATETIME),
        Column("paid", "付", "Paid", CellType.DATETIME, width=25),
    ]
    sheet = openpyxl.load_workbook(
        io.BytesIO(Exported(specification(made_of, format=Format.XLSX), []).data)
    ).worksheets[0]
    assert [sheet.column_dimensions[letter].width for letter in "ABCD"] == [9, 11, 20, 25]


def test_text_of_several_lines_does_not_make_its_row_higher() -> None:
    """A wrapped cell would: a page of addresses should show as many rows as fit on the screen."""
    cells = openpyxl.load_workbook(io.BytesIO(book())).worksheets[0][3]
    [several] = [cell for cell in cells if cell.value == "x\ny\tz" and cell.column_letter == "P"]
    assert not several.alignment.wrap_text
    assert b"<row>" in zipfile.ZipFile(io.BytesIO(book())).read("xl/worksheets/sheet1.xml")


def test_number_formats_hold_nothing_that_excel_translates() -> None:
    """Only what Excel reads alike in Chinese and English: no locale, no colour, no names of days or months."""
    with zipfile.ZipFile(io.BytesIO(book())) as archive:
        codes = re.findall(r'formatCode="([^"]*)"', archive.read("xl/styles.xml").decode())
    assert codes == ["yyyy-mm-dd", "yyyy-mm-dd hh:mm:ss"]


def test_nothing_in_the_file_tells_who_made_it_or_where() -> None:
    with zipfile.ZipFile(io.BytesIO(book())) as archive:
        names = set(archive.namelist())
        properties = archive.read("docProps/core.xml") + archive.read("docProps/app.xml")
    assert {name for name in names if name.startswith("docProps/")} == {"docProps/core.xml", "docProps/app.xml"}
    assert set(re.findall(rb"<([\w:]+)[ >]", properties)) == {
        b"cp:coreProperties",
        b"dcterms:created",
        b"dcterms:modified",
        b"Properties",
        b"Application",
        b"AppVersion",
    }


def test_the_bytes_do_not_depend_on_what_else_is_installed() -> None:
    """openpyxl writes through lxml where it finds it."""
    program = "import sys; from tests.unit.test_formats_xlsx_validity import book; sys.stdout.buffer.write(book())"
    files = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "OPENPYXL_LXML": lxml},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        for lxml in ("True", "False")
    ]
    assert files == [book(), book()]
