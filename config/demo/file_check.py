"""Counts the rows of a finished file and looks at their order, without the code that wrote it."""

import csv
import datetime as dt
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from config.demo.place import DemoError

_EPOCH = dt.date(1899, 12, 30)
_CHUNK = 1 << 20
_ROW_END = b"</row>"
_ROW = re.compile(rb"<row[^>]*>(.*?)</row>", re.DOTALL)
_CELL = re.compile(rb"<c\b[^>]*?(?:/>|>(.*?)</c>)", re.DOTALL)
_TAGS = re.compile(rb"<[^>]*>")

Key = tuple[dt.date, int]
"""Day in the business zone, id."""


def count_rows(path: Path) -> int:
    """The number of orders in the file.

    Raises: DemoError when they are not strictly in order of day and id, so that none can be there twice.
    """
    rows, before = 0, (dt.date.min, 0)
    for key in _keys(path):
        if key <= before:
            raise DemoError(f"{path}: the order {key[1]} of {key[0]} stands behind {before[1]} of {before[0]}")
        rows, before = rows + 1, key
    return rows


def _keys(path: Path) -> Iterator[Key]:
    return _workbook_keys(path) if path.suffix == ".xlsx" else _csv_keys(path)


def _csv_keys(path: Path) -> Iterator[Key]:
    """Columns: id, order number, created at."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        next(lines)
        for line in lines:
            yield dt.date.fromisoformat(line[2][:10]), int(line[0])


def _workbook_keys(path: Path) -> Iterator[Key]:
    with zipfile.ZipFile(path) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
        for name in sorted(sheets, key=lambda name: int(re.sub(r"\D", "", name.rpartition("/")[2]))):
            with archive.open(name) as sheet:
                rows = _rows(sheet)
                next(rows)  # the header
                for cells in rows:
                    yield _EPOCH + dt.timedelta(days=int(float(cells[2]))), int(cells[0])


def _rows(sheet: IO[bytes]) -> Iterator[list[bytes]]:
    """The first three cells of each row, as text."""
    rest = b""
    while chunk := sheet.read(_CHUNK):
        whole, end, rest = (rest + chunk).rpartition(_ROW_END)
        for row in _ROW.finditer(whole + end):
            cells = [_TAGS.sub(b"", cell[1] or b"") for cell, _ in zip(_CELL.finditer(row[1]), range(3), strict=False)]
            yield cells
