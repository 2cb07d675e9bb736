"""The artifact as literal bytes and ranges of segments: rendered once, read at any byte range, never a second copy."""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from exports.errors import SegmentDamaged


@dataclass(frozen=True, slots=True)
class Piece:
    """Either `data`, or `length` bytes of a segment file from `offset` (then `segment` is its name)."""

    length: int
    data: bytes = b""
    segment: str = ""
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Recipe:
    """size in bytes; sha256 of the whole artifact, hex: it names the bytes, whoever uploads them. manifest: its text."""

    pieces: tuple[Piece, ...]
    size: int
    sha256: str
    manifest: str

    def spans(self, offset: int, length: int) -> Iterator[Piece]:
        """The pieces of one byte range of the artifact, cut to it."""
        start = 0
        end = offset + length
        for piece in self.pieces:
            low, high = max(offset, start), min(end, start + piece.length)
            if low < high:
                yield _cut(piece, low - start, high - low)
            start += piece.length
            if start >= end:
                return

    def dump(self) -> str:
        """One JSON text."""
        pieces = [
            [piece.segment, piece.offset, piece.length] if piece.segment else base64.b64encode(piece.data).decode()
            for piece in self.pieces
        ]
        plain = {"size": self.size, "sha256": self.sha256, "pieces": pieces, "manifest": self.manifest}
        return json.dumps(plain)


def _cut(piece: Piece, skip: int, length: int) -> Piece:
    if piece.segment:
        return Piece(length, segment=piece.segment, offset=piece.offset + skip)
    return Piece(length, data=piece.data[skip : skip + length])


def load(text: str | bytes, *, sha256: str) -> Recipe:
    """The recipe of these bytes out of its JSON text. Raises: SegmentDamaged (without shards) when it is not that."""
    try:
        plain = json.loads(text)
        pieces = tuple(map(_piece, plain["pieces"]))
        recipe = Recipe(pieces, int(plain["size"]), str(plain["sha256"]), str(plain["manifest"]))
    except (ValueError, KeyError, TypeError) as error:
        raise SegmentDamaged(()) from error
    if recipe.sha256 != sha256:
        raise SegmentDamaged(())
    return recipe


def _piece(plain: str | Sequence[str | int]) -> Piece:
    if isinstance(plain, str):
        data = base64.b64decode(plain, validate=True)
        return Piece(len(data), data=data)
    segment, offset, length = plain
    return Piece(int(length), segment=str(segment), offset=int(offset))


def read(
    recipe: Recipe, offset: int, length: int, *, read_segment: Callable[[Piece], Iterator[bytes]]
) -> Iterator[bytes]:
    """Chunks of one byte range."""
    for piece in recipe.spans(offset, length):
        if piece.segment:
            yield from read_segment(piece)
        else:
            yield piece.data
