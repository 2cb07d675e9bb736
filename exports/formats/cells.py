"""What every format does to the cells of a page, in bulk.

A page is worked on as one run of bytes wherever that is possible, and cell by cell only where a bulk test
found something: pages have tens of thousands of cells, and one Python call for each costs more than the rest.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from exports import contracts
from exports.contracts import CELL, ROW, Block, CellType, Column, Specification
from exports.errors import StepBroken

TEXT_TYPES = frozenset(
    {
        CellType.TEXT,
        CellType.IDENTIFIER,
        CellType.ENUM,
        CellType.JSON,
        CellType.UUID,
        CellType.URL,
        CellType.BYTES,
    }
)
"""Types whose cells are text in every format."""

REPLACED = "replaced_characters"
"""Code of the warning about cells with U+FFFD in place of what no file can carry."""
CUT = "cut_cells"
"""Code of the warning about cells that are longer than a spreadsheet allows."""

WARNING_KEYS = 5
"""Most keys that one warning of a page names."""

_EVERY_BYTE = bytes(range(256))
# XML 1.0 allows no control character but tab, line feed and carriage return, and neither U+FFFE nor U+FFFF.
# Source: https://www.w3.org/TR/xml/#charsets
_CONTROLS = bytes(code for code in range(0x1E) if code not in b"\t\n\r")
_ALL_BUT_CONTROLS = _EVERY_BYTE.translate(None, _CONTROLS)
_NONCHARACTERS = ("\ufffe".encode(), "\uffff".encode())
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# An unpaired surrogate written as if it were a character: three bytes that must become one U+FFFD, not three.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_REPLACEMENT = "\ufffd"

_RUN_OF_MARKS = re.compile(rb"[^\x1f]+")
_SHORT_OFFSET = re.compile(rb"([+-][0-9]{2})(?=\x1f)")


def labels(specification: Specification) -> list[str]:
    """The header, in the language of the specification."""
    return [column.zh if specification.header_language == "zh" else column.en for column in specification.columns]


def text_columns(columns: Sequence[Column]) -> frozenset[int]:
    """Positions of the columns whose cells are text."""
    return frozenset(position for position, column in enumerate(columns) if column.type in TEXT_TYPES)


def flatten(block: Block) -> bytes:
    """All cells of a block, joined by `CELL` alone. Raises: StepBroken when they are not as many rows as it says."""
    if block.data.count(ROW) != block.rows - 1:
        raise StepBroken(f"a block of {block.rows} rows holds another number of rows")
    return block.data.replace(ROW, CELL)


def split(flat: bytes, *, rows: int, width: int) -> list[bytes]:
    """The cells; number n stands in row n // width. Raises: StepBroken when rows would not be of equal width."""
    cells = flat.split(CELL)
    if len(cells) != rows * width:
        raise StepBroken(f"a block of {rows} rows does not hold {width} cells a row")
    return cells


def replace_forbidden(cells: list[bytes], flat: bytes) -> list[int]:
    """Replace, in `cells`, each character that XML cannot carry; numbers of the cells changed, ascending.

    cells: those of `flat`, escaped or not: what is replaced here has no part in any escaping.
    """
    controls = set(flat.translate(None, _ALL_BUT_CONTROLS))
    positions = [at for control in controls for at in _positions(flat, bytes([control]))]
    positions += [at for at in _positions(flat, b"\xef") if flat[at : at + 3] in _NONCHARACTERS]
    found = sorted({*cell_numbers(flat, sorted(positions)), *_not_utf8(flat)})
    for number in found:
        cells[number] = without_forbidden(cells[number])
    return found


def without_forbidden(cell: bytes) -> bytes:
    """The cell as valid UTF-8, with U+FFFD for each character that XML cannot carry."""
    text = _SURROGATE.sub(_REPLACEMENT.encode(), cell).decode(errors="replace")
    return _FORBIDDEN.sub(_REPLACEMENT, text).encode()


def marked(flat: bytes, *, keep: bytes) -> Iterator[tuple[int, bytes]]:
    """Number of each cell that holds a byte of `keep`, with those of its bytes, in order."""
    marks = flat.translate(None, _EVERY_BYTE.translate(None, keep + CELL))
    seen = 0
    for run in _RUN_OF_MARKS.finditer(marks):
        yield run.start() - seen, run[0]
        seen += len(run[0])


def cell_numbers(flat: bytes, positions: Iterable[int]) -> Iterator[int]:
    """Number of the cell at each of the ascending positions."""
    number = last = 0
    for position in positions:
        number += flat.count(CELL, last, position)
        last = position
        yield number


def warnings(
    code: str, *, block: Block, numbers: Sequence[int], width: int, known: tuple[str, ...] = ()
) -> tuple[contracts.Warning, ...]:
    """One warning about the cells with these numbers, or none. known: keys of rows changed before, a cell each."""
    if not numbers and not known:
        return ()
    rows = block.data.split(ROW) if numbers else []
    first = list(dict.fromkeys(number // width for number in numbers))[:WARNING_KEYS]
    keys = dict.fromkeys([*known, *(rows[row].split(CELL, 1)[0].decode(errors="replace") for row in first)])
    return (contracts.Warning(code=code, count=len(numbers) + len(known), keys=tuple(keys)[:WARNING_KEYS]),)


def iso_times(cells: Sequence[bytes]) -> list[bytes]:
    """ISO 8601 of DATETIME cells in the text form: `T` for the space, and minutes in every offset."""
    text = CELL.join(cells).replace(b" ", b"T") + CELL
    offset = next(filter(None, cells), b"")[-3:]
    if offset[:1] in (b"+", b"-"):
        text = text.replace(offset + CELL, offset + b":00" + CELL)
    shape = text.translate(None, b"0123456789.")
    if b"+\x1f" in shape or b"-\x1f" in shape:
        # A page over a clock change has a second offset.
        text = _SHORT_OFFSET.sub(rb"\1:00", text)
    return text[:-1].split(CELL)


def _positions(flat: bytes, byte: bytes) -> Iterator[int]:
    # To find one byte is ten times as quick as to find two, or any pattern.
    at = flat.find(byte)
    while at >= 0:
        yield at
        at = flat.find(byte, at + 1)


def _not_utf8(flat: bytes) -> list[int]:
    try:
        flat.decode()
    except UnicodeDecodeError:
        return [number for number, cell in enumerate(flat.split(CELL)) if not _is_utf8(cell)]
    return []


def _is_utf8(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True
