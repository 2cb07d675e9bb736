"""A page's cells as one value of bytes, and where each of them begins and ends.

A page has tens of thousands of cells: one Python object for each costs more than everything else that is done to it.
So kinds hand over blocks, and whoever must look into one asks its grid, which answers for all cells at once.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

CELL: Final = b"\x1f"
"""Stands between the cells of a row."""
ROW: Final = b"\x1e"
"""Stands between the rows of a block."""

Numbers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

_FIRST_SEPARATOR: Final = ROW[0]
_FIRST_PLAIN: Final = 0x20


def byte_set(members: bytes) -> Flags:
    """A flag for each of the 256 bytes; with an array of bytes as index it tells which of them are members."""
    flags = np.zeros(256, np.bool_)
    flags[list(members)] = True
    return flags


@dataclass(frozen=True)
class Block:
    """One page: cells joined by `CELL`, rows by `ROW`, none at the end; valid UTF-8.

    No cell holds a separator. An empty block (rows == 0) ends the shard. `replaced` are keys of rows whose
    separators or bytes that are no valid UTF-8 were replaced by U+FFFD by the kind.
    """

    data: bytes
    rows: int
    last_key: str
    replaced: tuple[str, ...] = ()

    @functools.cached_property
    def grid(self) -> "Grid":
        return Grid(self.data)


class Grid:
    """The cells of a page by number, in reading order: with `width` columns, cell n stands in row n // width.

    data: the block's, with a `ROW` behind it, so that every cell has an end. codes: its bytes as numbers.
    starts, ends: positions of each cell's first byte and of the separator behind it.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data + ROW
        self.codes = np.frombuffer(self.data, np.uint8)
        low = np.flatnonzero(self.codes < _FIRST_PLAIN)
        separates = self.codes[low] >= _FIRST_SEPARATOR
        self.ends = low[separates]
        self.starts = np.concatenate(([0], self.ends[:-1] + 1))
        self._controls = low[~separates]

    def has_shape(self, *, rows: int, width: int) -> bool:
        """Whether these are so many rows of so many cells each."""
        if len(self.ends) != rows * width:
            return False
        closes_row = self.codes[self.ends].reshape(rows, width) == ROW[0]
        return bool(closes_row[:, -1].all()) and not closes_row[:, :-1].any()

    def cell(self, number: int) -> bytes:
        return self.data[self.starts[number] : self.ends[number]]

    def first_codes(self) -> npt.NDArray[np.uint8]:
        """First byte of each cell; that of an empty cell is a separator."""
        return self.codes[self.starts]

    def last_codes(self) -> npt.NDArray[np.uint8]:
        """Last byte of each cell; that of an empty cell is a separator."""
        return self.codes[self.ends - 1]

    def controls(self) -> tuple[Numbers, npt.NDArray[np.uint8]]:
        """Positions, and values, of the control characters inside cells."""
        return self._controls, self.codes[self._controls]

    def positions(self, byte: int) -> Numbers:
        """Where a byte stands inside cells. byte: no separator."""
        if byte < _FIRST_PLAIN:
            positions, values = self.controls()
            found: Numbers = positions[values == byte]
            return found
        return np.flatnonzero(self.codes == byte)

    def numbers(self, positions: Numbers) -> Numbers:
        """Numbers of the cells that hold these positions, ascending, each once."""
        holds = np.zeros(len(self.ends), np.bool_)
        holds[np.searchsorted(self.ends, positions)] = True
        return np.flatnonzero(holds)

    def texts(self, numbers: Numbers) -> Iterator[tuple[int, bytes]]:
        """Some cells with their numbers."""
        spans = zip(numbers.tolist(), self.starts[numbers].tolist(), self.ends[numbers].tolist(), strict=True)
        return ((number, self.data[start:end]) for number, start, end in spans)

    def patched(self, data: bytes, texts: Mapping[int, bytes]) -> bytes:
        """`data`, which is as long as the grid's, with these cells' texts in place of what stood there."""
        numbers = sorted(texts)
        starts, ends = self.starts[numbers].tolist(), self.ends[numbers].tolist()
        kept = [data[start:end] for start, end in zip([0, *ends], [*starts, len(data)], strict=True)]
        pieces = [b""] * (2 * len(numbers) + 1)
        pieces[::2] = kept
        pieces[1::2] = [texts[number] for number in numbers]
        return b"".join(pieces)
