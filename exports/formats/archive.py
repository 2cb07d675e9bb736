"""A zip file whose members are known, with lengths and checksums, before their bytes are written.

Source: APPNOTE.TXT 6.3.10 (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT), sections 4.3 and 4.5.3.
"""

import struct
from dataclasses import dataclass

_STORED, _DEFLATED = 0, 8
_DATE = 0x0021  # 1980-01-01, the first that a zip can hold
_PLAIN, _ZIP64 = 20, 45  # versions needed to read
_LIMIT = 0xFFFFFFFF
_MANY = 0xFFFF


@dataclass(frozen=True, slots=True)
class Member:
    """One member. length, raw_length: bytes in the archive and before compression; crc: of the latter."""

    name: str
    crc: int
    length: int
    raw_length: int
    deflated: bool


class Archive:
    """Makes what stands around the members' bytes; the caller writes them in the order of the calls."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []
        self._position = 0

    def header(self, member: Member) -> bytes:
        """What stands before the member's bytes; exactly `member.length` bytes must follow."""
        sizes = (member.raw_length, member.length)
        large = max(sizes) >= _LIMIT
        # Both sizes move together here: a local header must hold both or none.
        extra = struct.pack("<HHQQ", 1, 16, *sizes) if large else b""
        fixed = self._fixed(member, sizes=(_LIMIT, _LIMIT) if large else sizes, extra=extra, large=large)
        header = b"PK\x03\x04" + fixed + member.name.encode() + extra
        self._entries.append(self._entry(member))
        self._position += len(header) + member.length
        return header

    def end(self) -> bytes:
        """The central directory, which ends the file."""
        directory = b"".join(self._entries)
        count, length, start = len(self._entries), len(directory), self._position
        large = count >= _MANY or max(length, start) >= _LIMIT
        zip64 = self._zip64_end(count, length, start) if large else b""
        short = (min(count, _MANY), min(count, _MANY), min(length, _LIMIT), min(start, _LIMIT))
        return directory + zip64 + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, *short, 0)

    def _entry(self, member: Member) -> bytes:
        values = (member.raw_length, member.length, self._position)
        overflow = [value for value in values if value >= _LIMIT]
        extra = struct.pack(f"<HH{len(overflow)}Q", 1, 8 * len(overflow), *overflow) if overflow else b""
        raw, length, position = (min(value, _LIMIT) for value in values)
        fixed = self._fixed(member, sizes=(raw, length), extra=extra, large=bool(overflow))
        made_by = struct.pack("<H", _ZIP64)
        place = struct.pack("<HHHII", 0, 0, 0, 0, position)
        return b"PK\x01\x02" + made_by + fixed + place + member.name.encode() + extra

    def _fixed(self, member: Member, *, sizes: tuple[int, int], extra: bytes, large: bool) -> bytes:
        raw, length = sizes
        version = _ZIP64 if large else _PLAIN
        method = _DEFLATED if member.deflated else _STORED
        lengths = (length, raw, len(member.name.encode()), len(extra))
        return struct.pack("<HHHHHIIIHH", version, 0, method, 0, _DATE, member.crc, *lengths)

    def _zip64_end(self, count: int, length: int, start: int) -> bytes:
        record = struct.pack("<QHHIIQQQQ", 44, _ZIP64, _ZIP64, 0, 0, count, count, length, start)
        locator = struct.pack("<IQI", 0, start + length, 1)
        return b"PK\x06\x06" + record + b"PK\x06\x07" + locator
