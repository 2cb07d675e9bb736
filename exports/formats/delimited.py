"""CSV by RFC 4180: CRLF record ends, fields quoted only where they must be, one header."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import numpy as np

from exports.blocks import CELL, ROW, Block, Grid
from exports.contracts import CellType, Page, Specification, TimeForm
from exports.formats.base import Literal, Range, SegmentPages
from exports.formats.cells import (
    REPLACED,
    SHORT_OFFSET_REST,
    TEXT_TYPES,
    checked_grid,
    forbidden,
    iso_time,
    labels,
    warnings,
    without_forbidden,
)
from exports.formats.deflate import crc32
from exports.formats.formulas import looks_like_formula, suspects

_RECORD_END: Final = b"\r\n"
_QUOTE: Final = ord('"')
_DATE_LENGTH: Final = len("2026-09-14")
# What is to stand around a separator is marked in the separator itself: it becomes a smaller number. No cell holds
# any of these, since they are control characters, which have been replaced.
_SHORTENED: Final = 2  # before it: the minutes that the offset of a time lacks
_OPENED: Final = 4  # behind it: the quote that opens a field
_CLOSED: Final = 8  # before it: the quote that closes a field
_DOUBLED: Final = 0x11  # stands for a quote inside a field
_AROUND: Final = {
    before + behind: (text_before, text_behind)
    for before, text_before in ((0, b""), (_SHORTENED, SHORT_OFFSET_REST), (_CLOSED, b'"'))
    for behind, text_behind in ((0, b""), (_OPENED, b'"'))
    if before or behind
}


class DelimitedEncoder:
    """Pages of CSV records in the charset of the specification.

    A page is copied as it is but for the cells that need another text; then its separators become those of CSV.
    """

    def __init__(self, specification: Specification) -> None:
        columns = specification.columns
        self._width = len(columns)
        self._times = [place for place, column in enumerate(columns) if column.type is CellType.DATETIME]
        self._guarded = np.array(
            [specification.formula_guard and column.type in TEXT_TYPES for column in columns], np.bool_
        )
        self._delimiter = specification.delimiter.encode()
        self._to_delimiter = np.uint8((self._delimiter[0] - CELL[0]) % 256)
        self._quoted = self._delimiter + bytes([_QUOTE]) + _RECORD_END
        self._charset = specification.charset

    def page(self, block: Block) -> Page:
        """The records of a block; an empty block has none."""
        if not block.rows:
            return Page(data=b"", rows=0, raw_length=0, raw_crc=0)
        grid = checked_grid(block, width=self._width)
        unfit = forbidden(grid)
        notes = warnings(REPLACED, block=block, numbers=unfit, width=self._width, known=block.replaced)
        codes = grid.codes.copy()
        texts = self._spell_times(grid, codes)
        # Before anything is replaced: a leading NUL calls for the guard.
        texts |= self._guard_formulas(grid)
        texts |= {number: without_forbidden(texts.get(number, cell)) for number, cell in grid.texts(unfit)}
        texts |= self._quote_fields(grid, codes, texts)
        data = self._charset_bytes(self._records(grid.patched(self._delimited(codes), texts)))
        return Page(data=data, rows=block.rows, raw_length=len(data), raw_crc=crc32(data), warnings=notes)

    def header(self, names: list[str]) -> bytes:
        """What stands before the first record: a byte order mark if the charset has one, and the header."""
        cells = [name.encode() for name in names]
        if self._guarded.any():
            cells = [b"'" + cell if looks_like_formula(cell) else cell for cell in cells]
        cells = [_quote(cell) if any(byte in self._quoted for byte in cell) else cell for cell in cells]
        mark = b"\xef\xbb\xbf" if self._charset == "utf-8-sig" else b""
        return mark + self._charset_bytes(self._delimiter.join(cells) + _RECORD_END)

    def _spell_times(self, grid: Grid, codes: np.typing.NDArray[np.uint8]) -> dict[int, bytes]:
        """Write ISO 8601 into `codes`, a copy of the grid's; the new text of those cells that have another shape."""
        rows = len(grid.ends) // self._width
        numbers = np.add.outer(np.array(self._times, np.intp), np.arange(rows) * self._width).ravel()
        starts, ends = grid.starts[numbers], grid.ends[numbers]
        usual = (codes[np.minimum(starts + _DATE_LENGTH, ends)] == ord(" ")) & (codes[ends - 1] <= ord("9"))
        codes[starts[usual] + _DATE_LENGTH] = ord("T")
        signs = codes[ends[usual] - len("+08")]
        codes[ends[usual][(signs == ord("+")) | (signs == ord("-"))]] -= _SHORTENED
        return {number: iso_time(cell) for number, cell in grid.texts(numbers[~usual & (ends > starts)])}

    def _guard_formulas(self, grid: Grid) -> dict[int, bytes]:
        numbers = suspects(grid)
        guarded = grid.texts(numbers[self._guarded[numbers % self._width]])
        return {number: b"'" + cell for number, cell in guarded if looks_like_formula(cell)}

    def _quote_fields(
        self, grid: Grid, codes: np.typing.NDArray[np.uint8], texts: Mapping[int, bytes]
    ) -> dict[int, bytes]:
        """Mark the quotes around and inside fields in `codes`; the new text of those that have one already."""
        found = {byte: grid.positions(byte) for byte in self._quoted}
        quoted = grid.numbers(np.concatenate([*found.values()]))
        if self._width == 1:  # an empty line is no record to most readers
            quoted = np.union1d(quoted, np.flatnonzero(grid.starts == grid.ends))
        plain = np.ones(len(grid.ends), np.bool_)
        plain[[0, *texts]] = False  # the first field has no separator before it
        marked = quoted[plain[quoted]]
        codes[grid.starts[marked] - 1] -= _OPENED
        codes[grid.ends[marked]] -= _CLOSED
        codes[found[_QUOTE]] = _DOUBLED
        others = grid.texts(quoted[~plain[quoted]])
        return {number: _quote(texts.get(number, cell)) for number, cell in others}

    def _delimited(self, codes: np.typing.NDArray[np.uint8]) -> bytes:
        """The page with the delimiter for each separator of cells without a mark; nearly all have none.

        By a sum of arrays: to replace them one by one takes three times as long.
        """
        delimited: np.typing.NDArray[np.uint8] = codes + (codes == CELL[0]) * self._to_delimiter
        return delimited.tobytes()

    def _records(self, cells: bytes) -> bytes:
        """The page with what its marks stand for, and the ends of records."""
        cells = cells.replace(bytes([_DOUBLED]), b'""').replace(ROW, _RECORD_END)
        for mark, (before, behind) in _AROUND.items():
            cells = cells.replace(bytes([CELL[0] - mark]), before + self._delimiter + behind)
            cells = cells.replace(bytes([ROW[0] - mark]), before + _RECORD_END + behind)
        return cells

    def _charset_bytes(self, text: bytes) -> bytes:
        return text.decode().encode(self._charset) if self._charset == "gb18030" else text


def _quote(cell: bytes) -> bytes:
    return b'"' + cell.replace(b'"', b'""') + b'"'


class DelimitedFormat:
    extension = "csv"
    content_type = "text/csv"
    time_form = TimeForm.TEXT

    def encoder(self, specification: Specification) -> DelimitedEncoder:
        return DelimitedEncoder(specification)

    def assemble(
        self,
        specification: Specification,
        segments: Iterable[SegmentPages],
        as_of: str,
        read: Callable[[Range], bytes],
    ) -> Iterable[Literal | Range]:
        """The header, then every segment as it is."""
        yield Literal(self.encoder(specification).header(labels(specification)))
        for segment in segments:
            length = sum(page.length for page in segment.pages)
            if length:
                yield Range(segment=segment.name, offset=0, length=length)
