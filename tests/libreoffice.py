"""What LibreOffice sees in a file: it opens it without a window, saves it as flat XML, and that is read."""

import datetime as dt
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

from tests import services

Value = str | float | bool | dt.datetime | None

_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_ALL_TEXT = 2
# Source: "Filter Options for CSV", LibreOffice Help: comma, quote, UTF-8, from line 1, then the type of each column.
_COMMA, _QUOTE, _UTF_8 = 44, 34, 76

# LibreOffice keeps a truth value as a formula; of others there must be none.
_TRUTH = {"of:=TRUE()": True, "of:=FALSE()": False}


def convert(path: Path, to: str, *options: str) -> None:
    """Put the file, in another form, beside it. Skips the test where LibreOffice is missing."""
    office = shutil.which("soffice")
    if office is None:
        services.missing("libreoffice-calc")
    profile = f"-env:UserInstallation=file://{path.parent}/profile"
    subprocess.run(
        [str(office), profile, "--headless", *options, "--convert-to", to, "--outdir", str(path.parent), str(path)],
        check=True,
        capture_output=True,
        timeout=150,
    )


def sheets(path: Path, *, text_columns: int = 0) -> list[list[list[Value]]]:
    """Sheets of rows of values, as wide as they are. text_columns: of a CSV file, all of which are read as text."""
    types = "/".join(f"{number}/{_ALL_TEXT}" for number in range(1, text_columns + 1))
    convert(path, "fods", *([f"--infilter=CSV:{_COMMA},{_QUOTE},{_UTF_8},1,{types}"] if text_columns else []))
    document = ET.parse(path.with_suffix(".fods"))
    return [list(_rows(table)) for table in document.iter(f"{_TABLE}table")]


def _rows(table: ET.Element) -> Iterator[list[Value]]:
    """Empty rows at the end, which LibreOffice makes up to fill the sheet, are left out."""
    waiting = 0
    for row in table.iter(f"{_TABLE}table-row"):
        values = list(_values(row))
        times = int(row.get(f"{_TABLE}number-rows-repeated", 1))
        if not values:
            waiting += times
            continue
        yield from ([] for _ in range(waiting))
        waiting = 0
        yield from (values for _ in range(times))


def _values(row: ET.Element) -> Iterator[Value]:
    waiting = 0
    for cell in row.iter(f"{_TABLE}table-cell"):
        times = int(cell.get(f"{_TABLE}number-columns-repeated", 1))
        value = _value(cell)
        if value is None:
            waiting += times
            continue
        yield from (None for _ in range(waiting))
        waiting = 0
        yield from (value for _ in range(times))


def _value(cell: ET.Element) -> Value:
    formula = cell.get(f"{_TABLE}formula")
    if formula is not None:
        return _TRUTH[formula]
    match cell.get(f"{_OFFICE}value-type"):
        case None:
            return None
        case "string":
            return "\n".join(_plain(line) for line in cell.findall(f"{_TEXT}p"))
        case "date":
            return dt.datetime.fromisoformat(cell.attrib[f"{_OFFICE}date-value"][:26])
        case _:
            return float(cell.attrib[f"{_OFFICE}value"])


def _plain(line: ET.Element) -> str:
    """Runs of spaces, tabs and line breaks are elements."""
    made = line.text or ""
    for part in line:
        match part.tag.removeprefix(_TEXT):
            case "s":
                made += " " * int(part.get(f"{_TEXT}c", 1))
            case "tab":
                made += "\t"
            case "line-break":
                made += "\n"
            case _:
                made += _plain(part)
        made += part.tail or ""
    return made
