"""How each type of cell is spelled: SQL for each database, and what Python must finish.

The text forms are those of `exports.contracts.CellType`. SQL gives the whole text where it can; floats, JSON,
and times of databases without zones are finished in Python, for those columns only.
"""

import datetime as dt
import json
import re
import zoneinfo
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from exports.blocks import Grid
from exports.conf import conf
from exports.contracts import CellType, Column, TimeForm

MASK = "***"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()

Finisher = Callable[[bytes], bytes]

# {c}: the quoted column, {s}: its scale.
_POSTGRESQL = {
    CellType.BOOLEAN: "CASE WHEN {c} THEN 'true' WHEN NOT {c} THEN 'false' END",
    CellType.BYTES: "encode({c}, 'hex')",
}
_POSTGRESQL_SERIAL = (
    "CASE WHEN {c} >= '1900-03-01' AND {c} < '10000-01-01'"
    " THEN (date_part('epoch', {c}::timestamp) / 86400 + 25569)::text ELSE {c}::text END"
)
_HYPHENS = (
    "CASE WHEN length({c}) = 32 THEN lower(concat_ws('-', substr({c}, 1, 8), substr({c}, 9, 4),"
    " substr({c}, 13, 4), substr({c}, 17, 4), substr({c}, 21))) ELSE lower({c}) END"
)
_SQLITE = {
    CellType.DECIMAL: "CASE WHEN {c} IS NOT NULL THEN printf('%%.{s}f', {c}) END",
    CellType.MONEY: "CASE WHEN {c} IS NOT NULL THEN printf('%%.{s}f', {c}) END",
    CellType.BOOLEAN: "CASE WHEN {c} THEN 'true' WHEN NOT {c} THEN 'false' END",
    CellType.DATE: "CASE WHEN {c} NOT LIKE '0000-%%' THEN {c} END",
    CellType.FLOAT: "export_float({c})",
    CellType.BYTES: "lower(hex({c}))",
    CellType.UUID: "CASE WHEN length({c}) = 32 THEN lower(substr({c}, 1, 8) || '-' || substr({c}, 9, 4) || '-' ||"
    " substr({c}, 13, 4) || '-' || substr({c}, 17, 4) || '-' || substr({c}, 21)) ELSE lower({c}) END",
}
_MYSQL = {
    CellType.BOOLEAN: _SQLITE[CellType.BOOLEAN],
    CellType.DATE: "CASE WHEN month({c}) > 0 AND dayofmonth({c}) > 0 THEN {c} END",
    CellType.BYTES: "lower(hex({c}))",
    CellType.UUID: _HYPHENS,
}
_INFINITE_TYPES = (CellType.DECIMAL, CellType.MONEY, CellType.DATE, CellType.DATETIME)
_INFINITE = (b"NaN", b"Infinity", b"-Infinity", b"infinity", b"-infinity")
_SQL = {"postgresql": _POSTGRESQL, "sqlite": _SQLITE, "mysql": _MYSQL}
_ROUND = {"postgresql": "round({c}, {s})", "mysql": "CAST({c} AS DECIMAL(65, {s}))"}


@dataclass(frozen=True, slots=True)
class Spelling:
    """Everything that decides the text of cells, apart from the column.

    stored_zone: of naive times. language: of the labels of an enumeration.
    """

    vendor: str
    form: TimeForm
    zone: str
    stored_zone: str
    masked: frozenset[str]
    language: str = field(default_factory=lambda: conf().header_language)


def sql(column: Column, *, spelling: Spelling, quoted: str, stored_scale: int | None) -> str:
    """SQL expression of a cell's text; NULL stands for empty. stored_scale: digits that the database keeps."""
    if column.name in spelling.masked:
        return f"'{MASK}'"
    return _template(column, spelling=spelling, stored_scale=stored_scale).format(c=quoted, s=column.scale)


def key_sql(quoted: str, *, vendor: str, uuid: bool) -> str:
    """SQL expression of a key's text, as its cell shows it where it is not masked. uuid: else any other type of key."""
    return _SQL[vendor].get(CellType.UUID if uuid else CellType.IDENTIFIER, "{c}").format(c=quoted)


def _template(column: Column, *, spelling: Spelling, stored_scale: int | None) -> str:
    vendor = spelling.vendor
    if column.type is CellType.DATETIME and vendor == "postgresql" and spelling.form is TimeForm.SERIAL:
        return _POSTGRESQL_SERIAL
    if column.type in (CellType.DECIMAL, CellType.MONEY) and stored_scale != column.scale:
        return _ROUND.get(vendor, _SQLITE[CellType.DECIMAL])
    return _SQL[vendor].get(column.type, "{c}")


def may_hold_infinite(grid: Grid, *, columns: Sequence[Column]) -> bool:
    """Whether a page has a cell that PostgreSQL spells `NaN` or `infinity`: to test in SQL costs a tenth of a page.

    Such a cell ends with a letter; that of a finite number or time ends with a digit, but for years before Christ.
    """
    numeric = np.array([column.type in _INFINITE_TYPES for column in columns], np.bool_)
    return bool((grid.last_codes().reshape(-1, len(columns))[:, numeric] > ord("9")).any())


def finisher(column: Column, *, spelling: Spelling, infinite: bool) -> Finisher | None:
    """What turns the database's text of a cell into the stated form; None where SQL did it all.

    infinite: the page may hold numbers or times that are not finite.
    """
    if column.name in spelling.masked:
        return None
    if column.type is CellType.FLOAT:
        return finish_float
    if column.type is CellType.JSON:
        return finish_json
    if column.choices:
        return _labeller(column, language=spelling.language)
    if infinite and column.type in _INFINITE_TYPES:
        return finish_unusual
    if column.type is CellType.DATETIME and spelling.vendor != "postgresql":
        return TimeFinisher(form=spelling.form, zone=spelling.zone, stored_zone=spelling.stored_zone)
    return None


def _labeller(column: Column, *, language: str) -> Finisher:
    """The label of a stored value; a value without one is shown as it is."""
    place = 0 if language == "zh" else 1
    labels = {value.encode(): shown[place].encode() for value, shown in column.choices.items()}
    return lambda cell: labels.get(cell, cell)


def finish_unusual(cell: bytes) -> bytes:
    """Empty for what is not finite; years before Christ as ISO 8601 counts them, in which 1 BC is 0000."""
    if cell in _INFINITE:
        return b""
    if not cell.endswith(b" BC"):
        return cell
    year, _, rest = cell.removesuffix(b" BC").partition(b"-")
    return b"%b%04d-%b" % (b"-" if int(year) > 1 else b"", int(year) - 1, rest)


def finish_float(cell: bytes) -> bytes:
    """Shortest form that reads back as the same number, without `.0`; empty if it is not finite. Zero has no sign."""
    try:
        number = float(cell)
    except ValueError:
        return b""
    if number - number != 0:
        return b""
    return repr(number + 0.0).removesuffix(".0").encode()


def finish_json(cell: bytes) -> bytes:
    """One spelling for all databases: sorted keys, Chinese as it is; half surrogate pairs become U+FFFD.

    As it is: what is no JSON, or is nested too deep, or holds a number of more digits than a float has.
    """
    if not cell:
        return cell
    try:
        value = json.loads(cell, parse_float=_exact_float)
    except (ValueError, RecursionError):
        return cell
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text).encode()


def _exact_float(text: str) -> float:
    """Raises: ValueError when the float is another number."""
    number = float(text)
    if Decimal(repr(number)) != Decimal(text):
        raise ValueError
    return number


def lost_surrogates(given: bytes, finished: bytes) -> bool:
    """Whether `finish_json` replaced something; a U+FFFD that was stored, plain or escaped, is no loss."""
    stored = given.count(REPLACEMENT) + given.lower().count(rb"\ufffd")
    return finished.count(REPLACEMENT) > stored


_SURROGATE = re.compile("[\ud800-\udfff]")
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # wall clock
_SERIAL_FROM = dt.datetime(1900, 3, 1)  # noqa: DTZ001  # wall clock


class TimeFinisher:
    """Turns naive text (`YYYY-MM-DD HH:MM[:SS[.ffffff]]`) into business time; keeps the last hours' conversion.

    Zero dates, and text that is no time, become empty.
    """

    def __init__(self, *, form: TimeForm, zone: str, stored_zone: str) -> None:
        self._serial = form is TimeForm.SERIAL
        self._zone = zoneinfo.ZoneInfo(zone)
        self._stored = zoneinfo.ZoneInfo(stored_zone)
        self._spans: dict[bytes, Span | None] = {}

    def __call__(self, cell: bytes) -> bytes:
        """The hour is looked up; a minute only where an hour has no single whole-hour offset."""
        if not cell:
            return cell
        span = self._span(cell[:_HOUR])
        if span is None:
            span = self._span(cell[:_MINUTE])
        if span is None or not (len(cell) == _WITHOUT_FRACTION or (cell[19:20] == b"." and len(cell) <= _LONGEST)):
            return self._exact(cell)
        rest = cell[span.length :]
        if b"." in rest:
            rest = rest.rstrip(b"0").rstrip(b".")
        if self._serial and span.local_s is not None:
            return _serial_text(span.local_s * 1_000_000 + _microseconds(cell, hour=span.length == _HOUR))
        return b"%b%b%b" % (span.text, rest, span.offset)

    def _exact(self, cell: bytes) -> bytes:
        """Offsets with seconds (zones of old), text with an offset of its own, or without a time of day."""
        try:
            given = dt.datetime.fromisoformat(cell.decode())
        except ValueError:
            return b""
        local = _moved(given if given.tzinfo else given.replace(tzinfo=self._stored), zone=self._zone)
        wall = local.replace(tzinfo=None)
        if self._serial and wall >= _SERIAL_FROM:
            return _serial_text((wall - _EPOCH) // dt.timedelta(microseconds=1))
        fraction = f".{wall.microsecond:06d}".rstrip("0") if wall.microsecond else ""
        return wall.isoformat(" ", "seconds").encode() + fraction.encode() + _offset_text(local)

    def _span(self, text: bytes) -> "Span | None":
        try:
            return self._spans[text]
        except KeyError:
            pass
        if len(self._spans) > _CACHED_SPANS:
            self._spans.clear()
        span = self._spans[text] = self._convert(text)
        return span

    def _convert(self, text: bytes) -> "Span | None":
        """None if the text starts no time, or if its times do not share one offset that leaves the rest as it is."""
        hour = len(text) == _HOUR
        try:
            first = dt.datetime.fromisoformat(text.decode()).replace(tzinfo=self._stored)
        except ValueError:
            return None
        local = _moved(first, zone=self._zone)
        last = _moved(first + dt.timedelta(minutes=59 if hour else 0), zone=self._zone)
        shift = local.replace(tzinfo=None) - first.replace(tzinfo=None)
        unit = dt.timedelta(hours=1) if hour else dt.timedelta(minutes=1)
        if shift % unit or local.utcoffset() != last.utcoffset():
            return None
        wall = local.replace(tzinfo=None)
        held = wall >= _SERIAL_FROM
        return Span(
            length=len(text),
            text=wall.isoformat(" ", "hours" if hour else "minutes").encode(),
            offset=_offset_text(local),
            local_s=(wall - _EPOCH) // dt.timedelta(seconds=1) if held else None,
        )


_HOUR = 13
_MINUTE = 16
_CACHED_SPANS = 4096
_WITHOUT_FRACTION = 19
_LONGEST = 26


@dataclass(frozen=True, slots=True)
class Span:
    """One hour or minute in business time: its first `length` characters as stored become `text`.

    local_s: wall-clock seconds since 1970 of its start; None before a spreadsheet's first date.
    """

    length: int
    text: bytes
    offset: bytes
    local_s: int | None


def _moved(moment: dt.datetime, *, zone: zoneinfo.ZoneInfo) -> dt.datetime:
    """In the zone; the last hours of the year 9999 stay in UTC, the only form left for them."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment.replace(tzinfo=dt.UTC)


def _microseconds(cell: bytes, *, hour: bool) -> int:
    """Of `[MM:]SS.ffffff`, what stands behind the hour or the minute."""
    minutes = int(cell[14:16]) if hour else 0
    return (minutes * 60 + int(cell[17:19] or 0)) * 1_000_000 + int(cell[20:26].ljust(6, b"0"))


def _serial_text(local_us: int) -> bytes:
    """Same operations in the same order as PostgreSQL's `date_part('epoch', …) / 86400 + 25569`: equal bytes."""
    return repr(local_us / 1_000_000.0 / 86400 + 25569).removesuffix(".0").encode()


def _offset_text(local: dt.datetime) -> bytes:
    """As PostgreSQL writes it: `+08`, `+05:30`, `+08:05:43`."""
    seconds = int((local.utcoffset() or dt.timedelta()).total_seconds())
    sign, seconds = ("-", -seconds) if seconds < 0 else ("+", seconds)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text.removesuffix(":00").removesuffix(":00").encode()
