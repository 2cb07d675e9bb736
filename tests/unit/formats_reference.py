"""What the formats must do to a value, written cell by cell and as plainly as can be.

The formats work on whole pages of bytes; the property tests hold them against this.
"""

import datetime as dt
import re

from exports.contracts import CellType

TEXT_LIKE = {
    CellType.TEXT,
    CellType.IDENTIFIER,
    CellType.ENUM,
    CellType.JSON,
    CellType.UUID,
    CellType.URL,
    CellType.BYTES,
}
BLANKS = " \t\n\r\u0085\u00a0\u1680\u180e\u2028\u2029\u202f\u205f\u2060\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x2010))
)
SIGNS = "=+-@＝＋－＠"


def allowed(character: str) -> bool:
    """XML 1.0, production [2] Char."""
    code = ord(character)
    return code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


def replaced(value: str) -> str:
    return "".join(character if allowed(character) else "\ufffd" for character in value)


def is_formula(value: str) -> bool:
    if value[:1] in ("\t", "\r", "\n", "\0") and value:
        return True
    rest = value.lstrip(BLANKS)
    if not rest or rest[0] not in SIGNS:
        return False
    return re.fullmatch(r"-[0-9]+(\.[0-9]+)?", value) is None


def iso(value: str) -> str:
    value = value.replace(" ", "T")
    return value + ":00" if re.search(r"[+-][0-9]{2}$", value) else value


def csv_value(value: str, kind: CellType, *, guard: bool = True) -> str:
    """What a CSV reader gets."""
    if kind in TEXT_LIKE:
        return ("'" if guard and is_formula(value) else "") + replaced(value)
    return iso(value) if kind is CellType.DATETIME and value else value


def csv_field(value: str, kind: CellType, *, delimiter: str = ",", guard: bool = True) -> str:
    """What stands in a CSV file."""
    value = csv_value(value, kind, guard=guard)
    if any(character in value for character in f'{delimiter}"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


def xlsx_value(value: str, kind: CellType) -> object:
    """What a spreadsheet shows: its type and its value. None: no value."""
    if not value:
        return None
    if kind in TEXT_LIKE:
        return cut(replaced(value).replace("\r\n", "\n").replace("\r", "\n"))
    if kind is CellType.BOOLEAN:
        return value == "true"
    if kind is CellType.DATE:
        return (dt.date.fromisoformat(value) - dt.date(1899, 12, 30)).days if value >= "1900-03-01" else value
    if kind is CellType.DATETIME:
        return iso(value) if ":" in value else float(value)
    digits = re.sub(r"^0+", "", re.sub(r"e.*|[-.]", "", value))
    return value if len(digits) > 15 else float(value)


def cut(text: str) -> str:
    """At most 32,767 UTF-16 units, without half a character at the end."""
    units = 0
    for place, character in enumerate(text):
        units += 2 if ord(character) > 0xFFFF else 1
        if units > 32_767:
            return text[:place]
    return text
