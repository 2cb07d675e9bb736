"""CSV by RFC 4180: CRLF record ends, fields quoted only where they must be, one header."""

from collections.abc import Callable, Iterable
from typing import Final

from exports.contracts import CELL, Block, CellType, Page, Specification, TimeForm
from exports.formats.base import Literal, Range, SegmentPages
from exports.formats.cells import (
    REPLACED,
    flatten,
    iso_times,
    labels,
    marked,
    replace_forbidden,
    split,
    text_columns,
    warnings,
)
from exports.formats.deflate import crc32
from exports.formats.formulas import looks_like_formula, suspects

_RECORD_END: Final = b"\r\n"


class DelimitedEncoder:
    """Pages of CSV records in the charset of the specification."""

    def __init__(self, specification: Specification) -> None:
        columns = specification.columns
        self._width = len(columns)
        self._times = [place for place, column in enumerate(columns) if column.type is CellType.DATETIME]
        self._text = text_columns(columns)
        self._guard = specification.formula_guard
        self._delimiter = specification.delimiter.encode()
        self._quoted = self._delimiter + b'"\r\n'
        self._charset = specification.charset

    def page(self, block: Block) -> Page:
        """The records of a block; an empty block has none."""
        if not block.rows:
            return Page(data=b"", rows=0, raw_length=0, raw_crc=0)
        flat = flatten(block)
        cells = split(flat, rows=block.rows, width=self._width)
        # Before anything is replaced: a leading NUL calls for the guard.
        self._guard_formulas(cells, flat)
        replaced = replace_forbidden(cells, flat)
        notes = warnings(REPLACED, block=block, numbers=replaced, width=self._width, known=block.replaced)
        self._spell_times(cells)
        self._quote(cells, flat)
        data = self._charset_bytes(self._records(cells))
        return Page(data=data, rows=block.rows, raw_length=len(data), raw_crc=crc32(data), warnings=notes)

    def header(self, names: list[str]) -> bytes:
        """What stands before the first record: a byte order mark if the charset has one, and the header."""
        cells = [name.encode() for name in names]
        flat = CELL.join(cells)
        if self._guard:
            cells = [b"'" + cell if looks_like_formula(cell) else cell for cell in cells]
        self._quote(cells, flat)
        mark = b"\xef\xbb\xbf" if self._charset == "utf-8-sig" else b""
        return mark + self._charset_bytes(self._records(cells))

    def _spell_times(self, cells: list[bytes]) -> None:
        for place in self._times:
            cells[place :: self._width] = iso_times(cells[place :: self._width])

    def _guard_formulas(self, cells: list[bytes], flat: bytes) -> None:
        if not self._guard:
            return
        for number in suspects(flat):
            if number % self._width in self._text and looks_like_formula(cells[number]):
                cells[number] = b"'" + cells[number]

    def _quote(self, cells: list[bytes], flat: bytes) -> None:
        for number, marks in marked(flat, keep=self._quoted):
            cell = cells[number].replace(b'"', b'""') if b'"' in marks else cells[number]
            cells[number] = b'"' + cell + b'"'
        if self._width == 1:
            # An empty line is no record to most readers.
            cells[:] = [cell or b'""' for cell in cells]

    def _records(self, cells: list[bytes]) -> bytes:
        rows = zip(*[iter(cells)] * self._width, strict=True)
        return _RECORD_END.join(map(self._delimiter.join, rows)) + _RECORD_END

    def _charset_bytes(self, text: bytes) -> bytes:
        return text.decode().encode(self._charset) if self._charset == "gb18030" else text


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
