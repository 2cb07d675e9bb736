"""XLSX: pages are deflated `<row>` elements; assembling lays a workbook around them and copies them as they are."""

import zlib
from collections.abc import Callable, Iterable, Iterator

from exports.blocks import Block
from exports.contracts import Page, Specification, TimeForm
from exports.formats.archive import Archive, Member
from exports.formats.base import Literal, Range, SegmentPages
from exports.formats.deflate import crc32, crc32_joined, packed, stored
from exports.formats.row_markup import RowMarkup
from exports.formats.sheet_breaks import Sheet, place
from exports.formats.workbook import SheetFrame, make_frame


class SpreadsheetEncoder:
    """Pages of deflated rows."""

    def __init__(self, specification: Specification) -> None:
        self._markup = RowMarkup(specification.columns)

    def page(self, block: Block) -> Page:
        """The rows of a block; an empty block has none."""
        if not block.rows:
            return Page(data=b"", rows=0, raw_length=0, raw_crc=0)
        xml, notes = self._markup.rows(block)
        return Page(data=packed(xml), rows=block.rows, raw_length=len(xml), raw_crc=crc32(xml), warnings=notes)


class SpreadsheetFormat:
    extension = "xlsx"
    content_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    time_form = TimeForm.SERIAL

    def encoder(self, specification: Specification) -> SpreadsheetEncoder:
        return SpreadsheetEncoder(specification)

    def assemble(
        self,
        specification: Specification,
        segments: Iterable[SegmentPages],
        as_of: str,
        read: Callable[[Range], bytes],
    ) -> Iterable[Literal | Range]:
        """The frame's small members, then the sheets, then the zip directory."""
        sheets = place(segments, data_rows=specification.sheet_rows - 1, read=read)
        frame = make_frame(specification, data_rows=[sheet.rows for sheet in sheets], as_of=as_of)
        archive = Archive()
        yield Literal(b"".join(_small_member(archive, name, data) for name, data in frame.members.items()))
        for sheet, around in zip(sheets, frame.sheets, strict=True):
            yield from _sheet_member(archive, sheet, around)
        yield Literal(archive.end())


def _small_member(archive: Archive, name: str, data: bytes) -> bytes:
    member = Member(name=name, crc=zlib.crc32(data), length=len(data), raw_length=len(data), deflated=False)
    return archive.header(member) + data


def _sheet_member(archive: Archive, sheet: Sheet, frame: SheetFrame) -> Iterator[Literal | Range]:
    head, tail = stored(frame.head), stored(frame.tail, last=True)
    crc = crc32_joined(crc32(frame.head), sheet.crc, length=sheet.raw_length)
    member = Member(
        name=frame.member,
        crc=crc32_joined(crc, crc32(frame.tail), length=len(frame.tail)),
        length=len(head) + sheet.length + len(tail),
        raw_length=len(frame.head) + sheet.raw_length + len(frame.tail),
        deflated=True,
    )
    yield Literal(archive.header(member) + head)
    yield from sheet.pieces
    yield Literal(tail)
