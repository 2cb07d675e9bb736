"""Types of command-line arguments. A wrong value ends the command with code 2 and the reason."""

import datetime as dt
import re
from argparse import ArgumentTypeError
from collections.abc import Callable

_AGE = re.compile(r"(\d{1,6})([mhd])", re.ASCII)
_UNITS = {"m": dt.timedelta(minutes=1), "h": dt.timedelta(hours=1), "d": dt.timedelta(days=1)}


def age(text: str) -> dt.timedelta:
    """How long ago: `90m`, `2h`, `3d`."""
    found = _AGE.fullmatch(text)
    if not found:
        raise ArgumentTypeError("must be a number of minutes, hours or days, such as 90m, 2h or 3d")
    return int(found[1]) * _UNITS[found[2]]


def number(low: int, high: int) -> Callable[[str], int]:
    """A whole number; both bounds are allowed."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise ArgumentTypeError(f"must be a whole number from {low:,} to {high:,}")
        return int(text)

    return parse
