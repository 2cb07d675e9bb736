"""The trace of the current work, as a W3C `traceparent`.

Source: https://www.w3.org/TR/trace-context/ (level 1, version 00). A trace id is 32 hexadecimal digits, a span id
16, both not all zeros. Header, task, hint and log line carry the same trace id.
"""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_NOTHING = re.compile(r"0+")

current: ContextVar[str | None] = ContextVar("traceparent", default=None)
"""The traceparent of the work in progress in this thread, or None."""


def new_traceparent() -> str:
    """A traceparent that starts a trace; sampled."""
    return f"00-{_identifier(16)}-{_identifier(8)}-01"


def parse_traceparent(header: str | None) -> str | None:
    """The header as version 00 spells it, or None where it is missing or wrong.

    A higher version is read by its first four fields, as the standard asks; version `ff` and a longer version 00
    are wrong.
    """
    found = _HEADER.fullmatch((header or "").strip(" \t"))
    if found is None:
        return None
    version, trace, span, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest) or _NOTHING.fullmatch(trace) or _NOTHING.fullmatch(span):
        return None
    return f"00-{trace}-{span}-{flags}"


def trace_id(traceparent: str) -> str:
    """The 32 digits that name the trace."""
    return traceparent.split("-")[1]


@contextmanager
def tracing(traceparent: str) -> Iterator[None]:
    """Make it the current trace of this thread for the block."""
    token = current.set(traceparent)
    try:
        yield
    finally:
        current.reset(token)


def _identifier(size: int) -> str:
    """Random hexadecimal digits of `size` bytes, never all zeros."""
    while True:
        digits = secrets.token_hex(size)
        if not _NOTHING.fullmatch(digits):
            return digits
