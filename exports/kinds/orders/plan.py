"""Which rows an export promises: the database's time, the largest key, and one aggregate a day.

A row belongs if its time lies in the day and before `as_of`, and its key is at most the largest key at plan.
"""

import datetime as dt
import json
import time
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Count, F, IntegerField, Max, Min, QuerySet, Sum
from django.db.models.functions import Mod

from exports.conf import conf
from exports.contracts import Drift, Recount, Shard, Snapshot
from exports.errors import SourceUnavailable
from exports.kinds.orders import guards
from exports.kinds.orders.failures import TIMEOUT
from exports.models import ReadOnlyModel

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

_ENDED = """SELECT pg_snapshot_xmin(pg_current_snapshot())::text::numeric >= %s::numeric AND NOT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'transactionid' AND transactionid::text = ANY(%s::text[]))"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a shard's reads need. Half-open times, UTC; both keys included; first and last are "" for an empty day."""

    start: dt.datetime
    end: dt.datetime
    first: str
    last: str
    checksum: int

    def to_text(self) -> str:
        plain = [self.start.isoformat(), self.end.isoformat(), self.first, self.last, self.checksum]
        return json.dumps(plain, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Bounds":
        start, end, first, last, checksum = json.loads(text)
        return cls(dt.datetime.fromisoformat(start), dt.datetime.fromisoformat(end), first, last, checksum)


@dataclass(frozen=True, slots=True)
class Source:
    """The table: its model and its time field."""

    model: type[ReadOnlyModel]
    time_field: str

    @property
    def key(self) -> str:
        return self.model._meta.pk.name  # noqa: SLF001  # the documented API of models

    @property
    def table(self) -> str:
        return self.model._meta.db_table  # noqa: SLF001  # the documented API of models

    def field(self, name: str) -> Any:
        """The model's field of this name; None if it has none."""
        fields = {field.name: field for field in self.model._meta.fields}  # noqa: SLF001  # the documented API of models
        return fields.get(name)

    def rows(self, connection: BaseDatabaseWrapper) -> QuerySet[Any]:
        return self.model.objects.using(connection.alias)


@dataclass(frozen=True, slots=True)
class _Totals:
    rows: int
    first: str
    last: str
    checksum: int


def take_snapshot(source: Source, *, window_end: dt.datetime) -> Snapshot:
    """Fix `as_of` and the largest key. `window_end`: UTC, not included."""
    with _statement() as connection, connection.cursor() as cursor:
        cursor.execute(_CLOCKS[connection.vendor])
        clock, older = cursor.fetchone()
    now = dt.datetime.fromisoformat(clock).replace(tzinfo=dt.UTC)
    lag = dt.timedelta(seconds=conf().settle_lag_s)
    as_of = now - lag if window_end > now - lag else now
    certain = _ended(older) if older else True
    with _statement() as connection:
        largest = source.rows(connection).aggregate(largest=Max("pk"))["largest"]
    return Snapshot(as_of=as_of, bounds="" if largest is None else str(largest), certain=certain)


def plan_shard(source: Source, *, snapshot: Snapshot, shard_id: str, window: tuple[dt.datetime, dt.datetime]) -> Shard:
    """Count one day, and find its smallest and largest key."""
    start, end = window[0], max(window[0], min(window[1], snapshot.as_of))
    totals = _count(source, snapshot=snapshot, window=(start, end))
    bounds = Bounds(start=start, end=end, first=totals.first, last=totals.last, checksum=totals.checksum)
    return Shard(id=shard_id, label=shard_id, bounds=bounds.to_text(), planned=totals.rows)


def recount(source: Source, *, shard: Shard, snapshot: Snapshot) -> Recount:
    """Count again: the same rule, the same bounds of the day, the rows of now."""
    planned = Bounds.from_text(shard.bounds)
    try:
        now = _count(source, snapshot=snapshot, window=(planned.start, planned.end))
    except SourceUnavailable as failure:
        if failure.code != TIMEOUT:
            raise
        return Recount(Drift.UNKNOWN)
    if (now.rows, now.checksum) != (shard.planned, planned.checksum):
        return Recount(Drift.CHANGED, difference=now.rows - shard.planned)
    return Recount(Drift.EXACT if snapshot.certain else Drift.UNKNOWN)


def _count(source: Source, *, snapshot: Snapshot, window: tuple[dt.datetime, dt.datetime]) -> _Totals:
    start, end = window
    if start >= end or not snapshot.bounds:
        return _Totals(rows=0, first="", last="", checksum=0)
    times = {f"{source.time_field}__gte": start, f"{source.time_field}__lt": end}
    with _statement() as connection:
        found = (
            source.rows(connection)
            .filter(**times, pk__lte=int(snapshot.bounds))
            .aggregate(
                rows=Count("*"),
                first=Min("pk"),
                last=Max("pk"),
                checksum=Sum(Mod(F("pk"), CHECKSUM_MODULUS, output_field=IntegerField())),
            )
        )
    return _Totals(
        rows=found["rows"],
        first="" if found["first"] is None else str(found["first"]),
        last="" if found["last"] is None else str(found["last"]),
        checksum=int(found["checksum"] or 0),
    )


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


def _statement() -> Any:
    return guards.statement(limit_ms=conf().plan_statement_timeout_ms)
