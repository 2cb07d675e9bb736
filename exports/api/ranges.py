"""The `Range` header, one range at most (RFC 9110, section 14)."""

import re
from dataclasses import dataclass

from exports.api.problems import RangeNotSatisfiable

_ONE_RANGE = re.compile(r"bytes=\s*([0-9]*)-([0-9]*)\s*", re.ASCII | re.IGNORECASE)
_DIGITS_MAX = 19


@dataclass(frozen=True, slots=True)
class Span:
    """`length` bytes from `offset`."""

    offset: int
    length: int

    def content_range(self, size: int) -> str:
        return f"bytes {self.offset}-{self.offset + self.length - 1}/{size}"


def parse_range(header: str, *, size: int) -> Span | None:
    """The span that is asked for; None where the header is to be ignored: other units, several ranges, nonsense.

    Raises: RangeNotSatisfiable for one well-formed range outside of the file.
    """
    match = _ONE_RANGE.fullmatch(header.strip())
    if not match or match.groups() == ("", "") or any(len(digits) > _DIGITS_MAX for digits in match.groups()):
        return None
    first, last = match.groups()
    if not first:
        return _suffix(int(last), size=size)
    end = min(int(last), size - 1) if last else size - 1
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        raise RangeNotSatisfiable(size)
    return Span(int(first), end - int(first) + 1)


def _suffix(length: int, *, size: int) -> Span:
    if not length or not size:
        raise RangeNotSatisfiable(size)
    taken = min(length, size)
    return Span(size - taken, taken)
