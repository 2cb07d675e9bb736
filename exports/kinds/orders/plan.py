"""Which rows an export promises: the database's time, the largest key, and one aggregate a day.

A row belongs if its time lies in the day and before `as_of`, and its key is at most the largest key at plan.
"""

import datetime as dt
import json
import time
import zoneinfo
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max

from exports.conf import conf
from exports.contracts import Drift, Recount, Shard, Snapshot
from exports.errors import SourceUnavailable
from exports.kinds.orders import guards, windows
from exports.kinds.orders.failures import TIMEOUT
from exports.kinds.orders.source import CompiledRows, Marks, Source, compiled

XMIN_POLL_S = 0.1
CHECKSUM_MODULUS = 1_000_003
"""Keys are summed modulo this prime, so that the sum of millions of large keys cannot overflow."""

_CLOCKS = {
    "postgresql": "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'),"
    " pg_snapshot_xmax(pg_current_snapshot())::text || coalesce((SELECT ',' || string_agg(DISTINCT transactionid::text, ',')"
    " FROM pg_locks WHERE locktype = 'transactionid'), '')",
    "mysql": "SELECT CAST(utc_timestamp(6) AS CHAR), ''",
    "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now'), ''",
}

_COUNT = "SELECT count(*), min({key}), max({key}), sum({key} %% {modulus}) FROM ({rows}) AS day_rows"

_counts: "WeakKeyDictionary[BaseDatabaseWrapper, dict[Source, tuple[str, CompiledRows]]]" = WeakKeyDictionary()
# Every transaction below this number has ended; on a replica: was replayed to its end.
_SETTLED = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text"

_ENDED = """SELECT pg_snapshot_xmin(pg_current_snapshot())::text::numeric >= %s::numeric AND NOT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'transactionid' AND transactionid::text = ANY(%s::text[]))"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a shard's reads need. Half-open times, UTC; both keys included; first and last are "" for an empty day.

    settled: see `Limits`.
    """

    start: dt.datetime
    end: dt.datetime
    first: str
    last: str
    checksum: int
    settled: str = ""

    def to_text(self) -> str:
        plain = [self.start.isoformat(), self.end.isoformat(), self.first, self.last, self.checksum, self.settled]
        return json.dumps(plain, separators=(",", ":"))

    @property
    def keys(self) -> tuple[str, str]:
        return self.first, self.last

    @classmethod
    def from_text(cls, text: str) -> "Bounds":
        start, end, *others = json.loads(text)
        return cls(dt.datetime.fromisoformat(start), dt.datetime.fromisoformat(end), *others)


@dataclass(frozen=True, slots=True)
class Limits:
    """What every shard of a plan shares. key: the largest; "" for an empty table.

    settled: PostgreSQL's number of the oldest transaction that was open at plan, "" elsewhere. A replica that has not
    replayed all older ones lacks rows of the plan.
    """

    key: str
    settled: str = ""

    def to_text(self) -> str:
        return f"{self.key}|{self.settled}"

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Limits":
        return cls(*snapshot.bounds.split("|"))


@dataclass(frozen=True, slots=True)
class _Totals:
    rows: int
    first: str
    last: str
    checksum: int


def read_clock() -> tuple[dt.datetime, str]:
    """The database's time, and on PostgreSQL the transactions that are under way."""
    with _statement() as connection, connection.cursor() as cursor:
        cursor.execute(_CLOCKS[connection.vendor])
        clock, older = cursor.fetchone()
    return dt.datetime.fromisoformat(clock).replace(tzinfo=dt.UTC), older


def take_snapshot(source: Source, *, window_end: dt.datetime) -> Snapshot:
    """Fix `as_of` and the largest key. `window_end`: UTC, not included."""
    now, older = read_clock()
    lag = dt.timedelta(seconds=conf().settle_lag_s)
    as_of = now - lag if window_end > now - lag else now
    certain = _ended(older) if older else True
    settled = _settled()
    with _statement(settled) as connection:
        largest = source.rows(connection).aggregate(largest=Max("pk"))["largest"]
    limits = Limits(key="" if largest is None else str(largest), settled=settled)
    return Snapshot(as_of=as_of, bounds=limits.to_text(), certain=certain)


def plan_shard(source: Source, *, snapshot: Snapshot, shard_id: str, window: tuple[dt.datetime, dt.datetime]) -> Shard:
    """Count one day, and find its smallest and largest key."""
    start, end = window[0], max(window[0], min(window[1], snapshot.as_of))
    limits = Limits.of(snapshot)
    totals = _count(source, limits=limits, window=(start, end))
    bounds = Bounds(
        start=start,
        end=end,
        first=totals.first,
        last=totals.last,
        checksum=totals.checksum,
        settled=limits.settled,
    )
    return Shard(id=shard_id, label=shard_id, bounds=bounds.to_text(), planned=totals.rows)


def day_now(source: Source, day: dt.date, *, largest: int, zone: zoneinfo.ZoneInfo) -> Shard:
    """A day as it is at this moment, without a promise. largest: key that no row is beyond."""
    snapshot = Snapshot(as_of=dt.datetime.max.replace(tzinfo=dt.UTC), bounds=Limits(str(largest)).to_text())
    return plan_shard(source, snapshot=snapshot, shard_id=str(day), window=windows.day_bounds(day, zone=zone))


def recount(source: Source, *, shard: Shard, snapshot: Snapshot) -> Recount:
    """Count again: the same rule, the same bounds of the day, the rows of now."""
    planned = Bounds.from_text(shard.bounds)
    try:
        now = _count(source, limits=Limits.of(snapshot), window=(planned.start, planned.end))
    except SourceUnavailable as failure:
        if failure.code != TIMEOUT:
            raise
        return Recount(Drift.UNKNOWN)
    if (now.rows, now.checksum) != (shard.planned, planned.checksum):
        return Recount(Drift.CHANGED, difference=now.rows - shard.planned)
    return Recount(Drift.EXACT if snapshot.certain else Drift.UNKNOWN)


def _count(source: Source, *, limits: Limits, window: tuple[dt.datetime, dt.datetime]) -> _Totals:
    start, end = window
    if start >= end or not limits.key:
        return _Totals(rows=0, first="", last="", checksum=0)
    with _statement(limits.settled) as connection, connection.cursor() as cursor:
        sql, rows = _compile_count(source, connection)
        times = {"start": source.time(connection, start), "end": source.time(connection, end)}
        cursor.execute(sql, rows.parameters(**times, last=int(limits.key)))
        count, first, last, checksum = cursor.fetchone()
    return _Totals(
        rows=count,
        first="" if first is None else str(first),
        last="" if last is None else str(last),
        checksum=int(checksum or 0),
    )


def _compile_count(source: Source, connection: BaseDatabaseWrapper) -> tuple[str, CompiledRows]:
    """SQL of the count, and the compiled rows in it; kept for as long as the connection."""
    known = _counts.setdefault(connection, {})
    if source not in known:
        marks = Marks.of(source, connection)
        window = source.window(connection, start=marks.start, end=marks.end, last=marks.last)
        rows = compiled(source, connection, window.order_by().values_list(source.key), marks)
        key = connection.ops.quote_name(source.key)
        known[source] = (_COUNT.format(key=key, modulus=CHECKSUM_MODULUS, rows=rows.sql), rows)
    return known[source]


def _ended(older: str) -> bool:
    """Wait, bounded, until no transaction from before the snapshot may still commit rows older than `as_of`.

    older: the snapshot's xmax, then the ids of open transactions. The snapshot alone does not tell: an open
    transaction newer than every completed one is not below xmax. Each holds a lock on its own id, which any role sees.
    """
    xmax, *running = older.split(",")
    deadline = time.monotonic() + conf().xmin_wait_s
    while True:
        with _statement() as connection, connection.cursor() as cursor:
            cursor.execute(_ENDED, [xmax, running])
            if cursor.fetchone()[0]:
                return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(XMIN_POLL_S)


def _settled() -> str:
    with _statement() as connection, connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            return ""
        cursor.execute(_SETTLED)
        return str(cursor.fetchone()[0])


def _statement(settled: str = "") -> Any:
    return guards.statement(limit_ms=conf().plan_statement_timeout_ms, settled=settled)
