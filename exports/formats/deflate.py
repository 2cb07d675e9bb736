"""Deflate streams made of pieces that can be joined in any order.

A page is compressed on its own and ends at a byte boundary with an empty window, so that pages stand beside
each other without being touched again. What is made while a file is assembled goes in uncompressed: then no
byte of the file depends on the codec of whoever assembles it.
"""

import struct
import zlib
from collections.abc import Iterator

from isal import isal_zlib

_RAW = -15
_STORED_MAX = 0xFFFF


def crc32(data: bytes) -> int:
    return isal_zlib.crc32(data)


def crc32_joined(first: int, second: int, *, length: int) -> int:
    """CRC-32 of two joined pieces from theirs and the length of the second."""
    return isal_zlib.crc32_combine(first, second, length)


def packed(data: bytes) -> bytes:
    """A page as a piece of a stream; level 1, since a page waits for nothing else as long as for this."""
    packer = isal_zlib.compressobj(1, isal_zlib.DEFLATED, _RAW)
    return packer.compress(data) + packer.flush(isal_zlib.Z_FULL_FLUSH)


def unpacked(piece: bytes) -> bytes:
    """The page of a piece made by `packed`."""
    return zlib.decompressobj(_RAW).decompress(piece)


def stored(data: bytes, *, last: bool = False) -> bytes:
    """A piece that holds `data` uncompressed. last: the stream ends with it."""
    return b"".join(_stored_blocks(data, last))


def _stored_blocks(data: bytes, last: bool) -> Iterator[bytes]:
    # Source: RFC 1951, 3.2.4.
    for start in range(0, max(len(data), 1), _STORED_MAX):
        part = data[start : start + _STORED_MAX]
        final = last and start + _STORED_MAX >= len(data)
        yield struct.pack("<BHH", final, len(part), len(part) ^ 0xFFFF) + part
