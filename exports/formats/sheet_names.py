r"""Names that a spreadsheet accepts for sheets.

Source: "Rename a worksheet", Microsoft Support: 1 to 31 characters, none of \ / ? * [ ] :, no apostrophe at
either end, not "History".
"""

import re
from collections.abc import Iterator

from exports.formats.cells import without_forbidden

_LONGEST = 31  # UTF-16 units
_UNFIT = re.compile(r"[\\/?*\[\]:\x00-\x1f\x7f]")
_APOSTROPHE_AT_AN_END = re.compile(r"^'|'$")
_RESERVED = {"history"}


def sheet_names(title: str, *, count: int) -> list[str]:
    """Different names for `count` sheets: the title, cut if need be, and from the second on a number behind it."""
    clean = _UNFIT.sub("_", without_forbidden(title.strip().encode(errors="replace")).decode())
    names: list[str] = []
    for name in _candidates(clean or "Sheet"):
        if name.casefold() not in {taken.casefold() for taken in names[:1]} | _RESERVED:
            names.append(name)
        if len(names) == count:
            break
    return names


def _candidates(title: str) -> Iterator[str]:
    yield _fit(title, suffix="")
    number = 2
    while True:
        yield _fit(title, suffix=f"_{number}")
        number += 1


def _fit(title: str, *, suffix: str) -> str:
    room = 2 * (_LONGEST - len(suffix))
    name = title.encode("utf-16-le")[:room].decode("utf-16-le", errors="ignore") + suffix
    return _APOSTROPHE_AT_AN_END.sub("_", name)
