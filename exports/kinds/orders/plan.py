"""Which rows an export promises: the database's time, the largest key, and one aggregate a day.

A row belongs if its time lies in the day and before `as_of` and, where keys rise with time, its key is at most the
largest key at plan.
"""

import datetime as dt
import time
import zoneinfo
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from django.db.backends.base.base import BaseDatabaseWrapper

from exports.conf import conf
from exports.contracts import Drift, Recount, Shard, Snapshot
from exports.errors import SourceUnavailable
from exports.kinds.orders import guards, ordering, windows
from exports.kinds.orders.bounds import Bounds, Limits
from exports.kinds.orders.failures import TIMEOUT
from exports.kinds.orders.source import CompiledRows, Marks, Source, compiled

XMIN_POLL_S = 0.1

_CLOCKS = {
    "postgresql": "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'),"
    " pg_snapshot_xmax(pg_current_snapshot())::text || coalesce((SELECT ',' || string_agg(DISTINCT transactionid::text, ',')"
    " FROM pg_locks WHERE locktype = 'transactionid'), '')",
    "mysql": "SELECT CAST(utc_timestamp(6) AS CHAR), ''",
    "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now'), ''",
}

_counts: "WeakKeyDictionary[BaseDatabaseWrapper, dict[Source, tuple[str, CompiledRows]]]" = WeakKeyDictionary()
# Every transaction below this number has ended; on a replica: was replayed to its end.
_SETTLED = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text"

_ENDED = """SELECT pg_snapshot_xmin(pg_current_snapshot())::text::numeric >= %s::numeric AND NOT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'transactionid' AND transactionid::text = ANY(%s::text[]))"""


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
        limits = Limits(key=ordering.of(source).limit(connection), settled=settled)
    return Snapshot(as_of=as_of, bounds=limits.to_text(), certain=certain)


def plan_shard(source: Source, *, snapshot: Snapshot, shard_id: str, window: tuple[dt.datetime, dt.datetime]) -> Shard:
    """Count one day, and find its first and last row."""
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


def day_now(source: Source, day: dt.date, *, zone: zoneinfo.ZoneInfo, limit_ms: int) -> Shard:
    """A day as it is at this moment, without a promise."""
    with guards.statement(limit_ms=limit_ms) as connection:
        limits = Limits(ordering.of(source).limit(connection))
    snapshot = Snapshot(as_of=dt.datetime.max.replace(tzinfo=dt.UTC), bounds=limits.to_text())
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
        order = ordering.of(source)
        times = {"start": source.time(connection, start), "end": source.time(connection, end)}
        cursor.execute(sql, rows.parameters(**times, **order.belonging_values(limits.key)) * order.copies)
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
        marks, order = Marks.of(source, connection), ordering.of(source)
        belonging = source.rows(connection).filter(order.belonging(marks))
        rows = compiled(source, connection, belonging.order_by().values_list(*order.fields), marks)
        known[source] = (order.count_sql(connection, rows.sql), rows)
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
