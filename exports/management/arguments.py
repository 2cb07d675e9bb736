"""Types of command-line arguments. A wrong value ends the command with code 2 and the reason."""

import datetime as dt
import re
from argparse import ArgumentTypeError
from collections.abc import Callable

from exports.service import REASON_MAX

_AGE = re.compile(r"(\d{1,6})([mhd])", re.ASCII)
_UNITS = {"m": dt.timedelta(minutes=1), "h": dt.timedelta(hours=1), "d": dt.timedelta(days=1)}


def not_empty(text: str) -> str:
    """Something: an empty value, as of a variable that a shell does not know, would ask for all."""
    if not text.strip():
        raise ArgumentTypeError("must not be empty")
    return text


def age(text: str) -> dt.timedelta:
    """How long ago: `90m`, `2h`, `3d`."""
    found = _AGE.fullmatch(text)
    if not found:
        raise ArgumentTypeError("must be a number of minutes, hours or days, such as 90m, 2h or 3d")
    return int(found[1]) * _UNITS[found[2]]


def moment(text: str) -> dt.datetime:
    """A time; UTC without a zone."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError("must be a time, such as 2026-09-30T08:00; UTC without a zone") from None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def day(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError("must be a date that exists, as YYYY-MM-DD") from None


def reason(text: str) -> str:
    """Why something is done that cannot be undone."""
    if not 1 <= len(text.strip()) <= REASON_MAX or not text.isprintable():
        raise ArgumentTypeError(f"must have 1 to {REASON_MAX} printable characters")
    return text.strip()


def multiplier(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0
    if not 1 <= found <= 10:
        raise ArgumentTypeError("must be a number from 1 to 10")
    return found


def number(low: int, high: int) -> Callable[[str], int]:
    """A whole number; both bounds are allowed."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise ArgumentTypeError(f"must be a whole number from {low:,} to {high:,}")
        return int(text)

    return parse
