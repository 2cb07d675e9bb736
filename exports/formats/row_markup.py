"""The `<row>` elements of a page, without any reference: they may stand at any place of any sheet.

Most cells of a column look alike, so their markup is laid between the cells of the whole page in one join.
Only a column that has an exception on this page (an empty cell, a long number …) is made cell by cell.
"""

import datetime as dt
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exports import contracts
from exports.blocks import CELL, ROW, Block, Grid, byte_set
from exports.contracts import CellType, Column
from exports.formats.cells import (
    CUT,
    REPLACED,
    TEXT_TYPES,
    checked_grid,
    forbidden,
    iso_time,
    warnings,
    without_forbidden,
)

CELL_LIMIT = 32_767
"""Most characters of a cell, in UTF-16 units. Source: Excel specifications and limits, Microsoft Support."""
_EXACT_DIGITS = 15
"""Significant digits that a spreadsheet keeps of a number; the same source."""
_FIRST_DAY, _EPOCH = dt.date(1900, 3, 1), dt.date(1899, 12, 30)
# Serials before 1900-03-01 are a day off in Excel, which counts a 29 February 1900 that never was.
# Source: "Excel incorrectly assumes that the year 1900 is a leap year", Microsoft Support.

_EMPTY = b"<c/>"
_ROW, _ROW_END = b"<row>", b"</row>"
# A spreadsheet keeps white space at the ends of text only where it is told to.
_TEXT_START, _PADDED_TEXT_START = b"<t>", b'<t xml:space="preserve">'
_SPACE = byte_set(b" \t\n\r")
_TRUTH = {b"true": b'<c t="b"><v>1</v></c>', b"false": b'<c t="b"><v>0</v></c>', b"": _EMPTY}
_GENERAL, _TEXT_FORMAT = "General", "@"
_TEXT_STYLE = 1
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")
_OF_NUMBERS = CELL + b"0123456789."
_LINE_BREAK = re.compile(rb"\r\n?")
# Excel reads _xHHHH_ as a character. Source: ECMA-376 part 1, 22.9.2.19 (ST_Xstring).
_CHARACTER_CODE = re.compile(rb"_(?=x[0-9A-Fa-f]{1,4}_)")


def number_format(column: Column) -> str:
    """The format in which a spreadsheet shows the column."""
    match column.type:
        case CellType.DATETIME:
            return "yyyy-mm-dd hh:mm:ss"
        case CellType.DATE:
            return "yyyy-mm-dd"
        case CellType.INTEGER:
            return "0"
        case CellType.DECIMAL | CellType.MONEY:
            return "0." + "0" * column.scale if column.scale else "0"
        case CellType.FLOAT | CellType.BOOLEAN:
            return _GENERAL
        case _:
            return _TEXT_FORMAT


def number_formats(columns: Sequence[Column]) -> list[str]:
    """All formats that the cells use; a cell's style is the place of its format in this list."""
    return list(dict.fromkeys([_GENERAL, _TEXT_FORMAT, *map(number_format, columns)]))


def escape(text: bytes) -> bytes:
    """Cell text as it stands in XML: markup escaped, line breaks LF, character codes taken literally."""
    text = text.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")
    if b"\r" in text:
        text = _LINE_BREAK.sub(b"\n", text)
    # To find one byte is ten times as quick as to find two.
    return _CHARACTER_CODE.sub(b"_x005F_", text) if b"_" in text and b"_x" in text else text


def text_cell(text: bytes, *, style: int) -> bytes:
    """A cell with text that is escaped already."""
    before, after = _text_markup(style)
    return before + text + after


class RowMarkup:
    """Makes the rows of pages that have these columns."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._width = len(columns)
        formats = number_formats(columns)
        self._looks = [_look(column, style=formats.index(number_format(column))) for column in columns]

    def rows(self, block: Block) -> tuple[bytes, tuple[contracts.Warning, ...]]:
        """XML of a block that has rows, and what was changed in it."""
        grid = checked_grid(block, width=self._width)
        cells = escape(block.data.replace(ROW, CELL)).split(CELL)
        unfit = forbidden(grid)
        for number in unfit.tolist():
            cells[number] = without_forbidden(cells[number])
        cut = np.array(self._cut_long_text(cells, grid), np.intp)
        notes = warnings(REPLACED, block=block, numbers=unfit, width=self._width, known=block.replaced)
        notes += warnings(CUT, block=block, numbers=cut, width=self._width)
        return self._join(cells, block.rows, padded=self._padded(grid)), notes

    def _cut_long_text(self, cells: list[bytes], grid: Grid) -> list[int]:
        """Cut, in `cells`, what is too long; the numbers of the cells changed."""
        cut = []
        for number, raw in grid.texts(np.flatnonzero(grid.ends - grid.starts > CELL_LIMIT)):
            if (short := _cut(raw)) is not None:
                cells[number] = escape(short)
                cut.append(number)
        return cut

    def _padded(self, grid: Grid) -> dict[int, list[int]]:
        """Rows of the cells that begin or end with white space, by the place of their column."""
        padded: dict[int, list[int]] = {}
        for number in np.flatnonzero(_SPACE[grid.first_codes()] | _SPACE[grid.last_codes()]).tolist():
            padded.setdefault(number % self._width, []).append(number // self._width)
        return padded

    def _join(self, cells: list[bytes], rows: int, *, padded: Mapping[int, list[int]]) -> bytes:
        step = 2 * self._width
        pieces = [b""] * (2 * len(cells))
        columns = [
            look.marked_up(cells[place :: self._width], padded=padded.get(place, []))
            for place, look in enumerate(self._looks)
        ]
        end = columns[-1].after + _ROW_END
        before = end + _ROW  # what closes the cell before, and the row if this is its first
        for place, column in enumerate(columns):
            pieces[2 * place :: step] = [before + column.before] * rows
            pieces[2 * place + 1 :: step] = column.cells
            before = column.after
        pieces[0] = pieces[0].removeprefix(end)
        return b"".join(pieces) + end


@dataclass(frozen=True, slots=True)
class _MarkedUp:
    """The cells of a column on one page, and what stands around each of them."""

    before: bytes
    cells: list[bytes]
    after: bytes


@dataclass(frozen=True, slots=True)
class _Look:
    """How a column is marked up. before, after: around an ordinary cell.

    ordinary: whether all cells of a page are. whole: all of them, each with its own markup.
    """

    before: bytes
    after: bytes
    ordinary: Callable[[list[bytes]], bool]
    whole: Callable[[list[bytes]], list[bytes]]

    def marked_up(self, cells: list[bytes], *, padded: list[int]) -> _MarkedUp:
        if not padded and self.ordinary(cells):
            return _MarkedUp(self.before, cells, self.after)
        whole = self.whole(cells)
        for row in padded:
            whole[row] = whole[row].replace(_TEXT_START, _PADDED_TEXT_START, 1)
        return _MarkedUp(b"", whole, b"")


def _look(column: Column, *, style: int) -> _Look:
    if column.type in TEXT_TYPES:
        return _text_look(style)
    before, after = _number_markup(style)
    match column.type:
        case CellType.BOOLEAN:
            return _Look(b"", b"", _never, lambda cells: [_TRUTH[cell] for cell in cells])
        case CellType.DATE:
            cell_of = functools.lru_cache(maxsize=4096)(functools.partial(_date_cell, style=style))
            return _Look(b"", b"", _never, lambda cells: [cell_of(cell) for cell in cells])
        case CellType.DATETIME:
            return _Look(before, after, _all_serials, functools.partial(_time_cells, style=style))
        case _:
            return _Look(before, after, _all_short, functools.partial(_number_cells, style=style))


def _text_look(style: int) -> _Look:
    before, after = _text_markup(style)
    return _Look(before, after, all, lambda cells: [before + cell + after if cell else _EMPTY for cell in cells])


def _never(_: list[bytes]) -> bool:
    return False


def _all_serials(cells: list[bytes]) -> bool:
    return all(cells) and b":" not in b"".join(cells)


def _all_short(cells: list[bytes]) -> bool:
    return all(cells) and max(map(len, cells)) <= _EXACT_DIGITS and not CELL.join(cells).translate(None, _OF_NUMBERS)


def _time_cells(cells: list[bytes], *, style: int) -> list[bytes]:
    before, after = _number_markup(style)
    if b":" in b"".join(cells):
        return [_time_cell(cell, style=style) for cell in cells]
    return [before + cell + after if cell else _EMPTY for cell in cells]


def _time_cell(cell: bytes, *, style: int) -> bytes:
    if b":" in cell:
        return text_cell(iso_time(cell), style=_TEXT_STYLE)
    return _number_cell(cell, style=style)


def _number_cells(cells: list[bytes], *, style: int) -> list[bytes]:
    return [
        _number_cell(cell, style=style) if _is_exact(cell) else text_cell(cell, style=_TEXT_STYLE) for cell in cells
    ]


def _number_cell(cell: bytes, *, style: int) -> bytes:
    before, after = _number_markup(style)
    return before + cell + after if cell else _EMPTY


def _is_exact(number: bytes) -> bool:
    """Whether a spreadsheet keeps all digits; zeros at the end count, those in front do not."""
    digits = number.partition(b"e")[0].lstrip(b"-0.").replace(b".", b"")
    return len(digits) <= _EXACT_DIGITS and (not number or _NUMBER.fullmatch(number) is not None)


def _date_cell(cell: bytes, *, style: int) -> bytes:
    try:
        day = dt.date.fromisoformat(cell.decode())
    except ValueError:
        day = dt.date.min
    if day < _FIRST_DAY:
        return text_cell(cell, style=_TEXT_STYLE) if cell else _EMPTY
    return _number_cell(b"%d" % (day - _EPOCH).days, style=style)


def _text_markup(style: int) -> tuple[bytes, bytes]:
    return b'<c s="%d" t="inlineStr"><is>' % style + _TEXT_START, b"</t></is></c>"


def _number_markup(style: int) -> tuple[bytes, bytes]:
    return (b'<c s="%d"><v>' % style if style else b"<c><v>"), b"</v></c>"


def _cut(raw: bytes) -> bytes | None:
    """The text within the limit, or None if nothing must go; a character of two units is not halved."""
    text = without_forbidden(raw).decode().replace("\r\n", "\n").replace("\r", "\n")
    units = text.encode("utf-16-le")
    if len(units) <= 2 * CELL_LIMIT:
        return None
    return units[: 2 * CELL_LIMIT].decode("utf-16-le", errors="ignore").encode()
