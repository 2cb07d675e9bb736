"""What every format does to the cells of a page, in bulk.

A page is worked on as one run of bytes wherever that is possible, and cell by cell only where a bulk test
found something: pages have tens of thousands of cells, and one Python call for each costs more than the rest.
"""

import re

import numpy as np

from exports import contracts
from exports.blocks import Block, Grid, Numbers, byte_set
from exports.contracts import CellType, Specification
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

SHORT_OFFSET_REST = b":00"
"""What ISO 8601 wants behind an offset of whole hours, which PostgreSQL writes as `+08`."""

# XML 1.0 allows no other control character than these, and neither U+FFFE nor U+FFFF.
# Source: https://www.w3.org/TR/xml/#charsets
_ALLOWED_CONTROLS = byte_set(b"\t\n\r")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_REPLACEMENT = "\ufffd"


def labels(specification: Specification) -> list[str]:
    """The header, in the language of the specification."""
    return [column.zh if specification.header_language == "zh" else column.en for column in specification.columns]


def checked_grid(block: Block, *, width: int) -> Grid:
    """The cells of a block that has rows. Raises: StepBroken when they are not the rows that it tells of."""
    if not block.grid.has_shape(rows=block.rows, width=width):
        raise StepBroken(f"a block does not hold {block.rows} rows of {width} cells")
    return block.grid


def forbidden(grid: Grid) -> Numbers:
    """Numbers of the cells with a character that XML cannot carry."""
    positions, codes = grid.controls()
    controls = positions[~_ALLOWED_CONTROLS[codes]]
    # Both noncharacters start with EF BF in UTF-8, as does U+FFFD, which is none.
    leads = grid.positions(0xEF)
    nonchars = leads[(grid.codes[leads + 1] == 0xBF) & (grid.codes[leads + 2] >= 0xBE)]
    return grid.numbers(np.concatenate((controls, nonchars)))


def without_forbidden(cell: bytes) -> bytes:
    """The cell with U+FFFD for each character that XML cannot carry."""
    return _FORBIDDEN.sub(_REPLACEMENT, cell.decode()).encode()


def warnings(
    code: str, *, block: Block, numbers: Numbers, width: int, known: tuple[str, ...] = ()
) -> tuple[contracts.Warning, ...]:
    """One warning about the cells with these numbers, or none. known: keys of rows changed before, a cell each."""
    if not numbers.size and not known:
        return ()
    first = np.unique(numbers // width)[:WARNING_KEYS].tolist()
    keys = dict.fromkeys([*known, *(block.grid.cell(row * width).decode() for row in first)])
    return (contracts.Warning(code=code, count=len(numbers) + len(known), keys=tuple(keys)[:WARNING_KEYS]),)


def iso_time(cell: bytes) -> bytes:
    """ISO 8601 of a DATETIME cell in the text form: `T` for the space, and minutes in the offset."""
    text = cell.replace(b" ", b"T", 1)
    return text + SHORT_OFFSET_REST if text[-3:-2] in (b"+", b"-") else text
