"""Everything of a workbook but its rows, made by openpyxl: styles, sheets, filters, relations.

openpyxl is imported where it is used: only the step that assembles a file pays for it.
"""

import datetime as dt
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree.ElementTree import canonicalize

from exports.contracts import CellType, Column, Specification
from exports.errors import StepBroken
from exports.formats.cells import labels
from exports.formats.row_markup import escape, number_formats, text_cell
from exports.formats.sheet_names import sheet_names

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook
    from openpyxl.worksheet.worksheet import Worksheet

_CONTENT_TYPES, _PROPERTIES, _STYLES = "[Content_Types].xml", "docProps/core.xml", "xl/styles.xml"
_SHEET_MEMBER = "xl/worksheets/sheet{}.xml"
_SHEET_DATA = re.compile(rb"<sheetData>.*</sheetData>")
_DIMENSION = re.compile(rb'(?<=<dimension ref=")[^"]*')
_FONT, _FONT_PART = re.compile(rb"(?<=<font>).*?(?=</font>)"), re.compile(rb"<(\w+).*?</\1>")
_FONT_ORDER = (b"b", b"sz", b"color", b"name", b"family", b"charset", b"scheme")
_A4 = 9
# A date in a narrower column is shown as "####"; text runs on and is cut.
_LEAST_WIDTHS = {CellType.DATE: 11, CellType.DATETIME: 20}


@dataclass(frozen=True, slots=True)
class SheetFrame:
    """One sheet without its data rows. head: up to and with the header row; tail: all behind the last row."""

    member: str
    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """The workbook without data rows. members: name in the zip file to bytes, in order."""

    members: Mapping[str, bytes]
    sheets: Sequence[SheetFrame]


def make_frame(specification: Specification, *, data_rows: Sequence[int], as_of: str) -> Frame:
    """The frame of a workbook whose sheets hold so many rows. as_of: ISO 8601, the only time in the file."""
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.worksheets[0])
    ranges = [_range(len(specification.columns), rows + 1) for rows in data_rows]
    names = sheet_names(specification.sheet_title, count=len(data_rows))
    for name, whole in zip(names, ranges, strict=True):
        _add_sheet(book, name, specification.columns, whole)
    header = _header(labels(specification), style=_add_styles(book.worksheets[0], specification.columns))
    members = _saved(book)
    sheets = []
    for number, whole in enumerate(ranges, start=1):
        member = _SHEET_MEMBER.format(number)
        sheets.append(_split(member, members.pop(member), header=header, whole=whole))
    members[_PROPERTIES] = _properties(as_of)
    members[_STYLES] = _FONT.sub(_in_schema_order, members[_STYLES])
    # Programs that tell a file's type from its first bytes look for this member there.
    return Frame({_CONTENT_TYPES: members.pop(_CONTENT_TYPES), **members}, sheets)


def _range(columns: int, rows: int) -> str:
    from openpyxl.utils import get_column_letter

    return f"A1:{get_column_letter(columns)}{rows}"


def _add_sheet(book: "Workbook", name: str, columns: Sequence[Column], whole: str) -> None:
    from openpyxl.utils import get_column_letter

    sheet = book.create_sheet(name)
    sheet.freeze_panes = "A2"
    sheet.auto_filter.ref = whole
    for number, column in enumerate(columns, start=1):
        sheet.column_dimensions[get_column_letter(number)].width = max(column.width, _LEAST_WIDTHS.get(column.type, 0))
    _set_up_print(sheet)


def _set_up_print(sheet: "Worksheet") -> None:
    """A4 across, all columns on one page, the header and the page's number on each."""
    sheet.print_title_rows = "1:1"
    sheet.page_setup.paperSize = _A4
    sheet.page_setup.orientation = "landscape"
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.page_setup.fitToWidth, sheet.page_setup.fitToHeight = 1, 0
    sheet.oddFooter.center.text = "&P / &N"


def _add_styles(sheet: "Worksheet", columns: Sequence[Column]) -> int:
    """Register the styles in the order that the rows count on; the style of the header.

    Each takes a cell of its own: a cell that is given one format after another registers them all.
    The cells go away with the sheet data, which `_split` replaces.
    """
    from openpyxl.styles import Font

    formats = number_formats(columns)
    for style, number_format in enumerate(formats):
        cell = sheet.cell(row=1, column=style + 1)
        cell.number_format = number_format
        if cell.style_id != style:
            raise StepBroken("the workbook numbers its styles in another order than the rows do")
    header = sheet.cell(row=1, column=len(formats) + 1)
    header.font = Font(name=header.font.name, size=header.font.size, bold=True)
    return int(header.style_id)


def _header(names: Sequence[str], *, style: int) -> bytes:
    return b"<row>" + b"".join(text_cell(escape(name.encode()), style=style) for name in names) + b"</row>"


def _saved(book: "Workbook") -> dict[str, bytes]:
    """Canonical XML: openpyxl spells the same elements in another way on a host that has lxml."""
    file = io.BytesIO()
    book.save(file)
    with zipfile.ZipFile(file) as archive:
        return {name: canonicalize(archive.read(name).decode()).encode() for name in archive.namelist()}


def _split(member: str, xml: bytes, *, header: bytes, whole: str) -> SheetFrame:
    """Readers in read-only mode believe the dimension: it must be that of the finished sheet."""
    xml = _DIMENSION.sub(whole.encode(), xml, count=1)
    data = _SHEET_DATA.search(xml)
    if data is None:
        raise StepBroken("the workbook's sheet has no place for rows")
    return SheetFrame(member, xml[: data.start()] + b"<sheetData>" + header, b"</sheetData>" + xml[data.end() :])


def _in_schema_order(font: "re.Match[bytes]") -> bytes:
    """The parts of a font as the Open XML SDK wants them (CT_Font); openpyxl writes another order."""
    parts = sorted(_FONT_PART.finditer(font[0]), key=lambda part: _FONT_ORDER.index(part[1]))
    return b"".join(part[0] for part in parts)


def _properties(as_of: str) -> bytes:
    time = dt.datetime.fromisoformat(as_of).astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    dates = "".join(
        f'<dcterms:{name} xsi:type="dcterms:W3CDTF">{time}</dcterms:{name}>' for name in ("created", "modified")
    )
    return (
        '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
        '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"'
        ' xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"{dates}</cp:coreProperties>"
    ).encode()
