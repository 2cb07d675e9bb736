"""Which page stands on which sheet. Pages are copied as they are; only one that crosses an edge is cut."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from exports.contracts import PageRecord
from exports.errors import StepBroken
from exports.formats.base import Literal, Range, SegmentPages
from exports.formats.deflate import crc32, crc32_joined, stored, unpacked

_ROW_END = b"</row>"


@dataclass(slots=True)
class Sheet:
    """The data rows of one sheet: pieces of a deflate stream, with what a zip entry must say about them."""

    rows: int = 0
    length: int = 0
    raw_length: int = 0
    crc: int = 0
    pieces: list[Literal | Range] = field(default_factory=list)

    def add_page(self, page: PageRecord, *, place: Range) -> None:
        last = self.pieces[-1] if self.pieces else None
        if isinstance(last, Range) and last.segment == place.segment and last.offset + last.length == place.offset:
            self.pieces[-1] = Range(segment=last.segment, offset=last.offset, length=last.length + place.length)
        else:
            self.pieces.append(place)
        self._count(rows=page.rows, length=page.length, raw_length=page.raw_length, crc=page.raw_crc)

    def add_rows(self, xml: bytes, *, rows: int, segment: str) -> None:
        piece = stored(xml)
        self.pieces.append(Literal(piece, segment))
        self._count(rows=rows, length=len(piece), raw_length=len(xml), crc=crc32(xml))

    def _count(self, *, rows: int, length: int, raw_length: int, crc: int) -> None:
        self.crc = crc32_joined(self.crc, crc, length=raw_length)
        self.rows += rows
        self.length += length
        self.raw_length += raw_length


def place(segments: Iterable[SegmentPages], *, data_rows: int, read: Callable[[Range], bytes]) -> list[Sheet]:
    """The sheets, at least one, with at most `data_rows` rows each; all but the last are full."""
    sheets = [Sheet()]
    for page, where in _pages(segments):
        if not page.rows:
            continue
        if sheets[-1].rows == data_rows:
            sheets.append(Sheet())
        if page.rows <= data_rows - sheets[-1].rows:
            sheets[-1].add_page(page, place=where)
        else:
            _place_cut(sheets, page, xml=_rows_of(page, read(where)), segment=where.segment, data_rows=data_rows)
    return sheets


def _pages(segments: Iterable[SegmentPages]) -> Iterator[tuple[PageRecord, Range]]:
    for segment in segments:
        offset = 0
        for page in segment.pages:
            yield page, Range(segment=segment.name, offset=offset, length=page.length)
            offset += page.length


def _rows_of(page: PageRecord, piece: bytes) -> bytes:
    xml = unpacked(piece)
    if len(xml) != page.raw_length or crc32(xml) != page.raw_crc or xml.count(_ROW_END) != page.rows:
        raise StepBroken("a page that must be cut is not the page that was committed")
    return xml


def _place_cut(sheets: list[Sheet], page: PageRecord, *, xml: bytes, segment: str, data_rows: int) -> None:
    left = page.rows
    while left:
        if sheets[-1].rows == data_rows:
            sheets.append(Sheet())
        rows = min(left, data_rows - sheets[-1].rows)
        end = _end_of_row(xml, number=rows)
        sheets[-1].add_rows(xml[:end], rows=rows, segment=segment)
        xml = xml[end:]
        left -= rows


def _end_of_row(xml: bytes, *, number: int) -> int:
    """Where the row with this number, from 1, ends. Text holds no `</row>`: its `<` are escaped."""
    end = 0
    for _ in range(number):
        end = xml.index(_ROW_END, end) + len(_ROW_END)
    return end
