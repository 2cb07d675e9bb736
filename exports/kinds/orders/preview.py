"""A look ahead: how many rows each day has now. No promise, so nothing waits for older transactions."""

import datetime as dt
import time
import zoneinfo
from collections.abc import Iterator, Sequence
from typing import Any

from exports.contracts import Preview, Shard
from exports.errors import SourceUnavailable
from exports.kinds.orders import guards, inspection, plan, windows
from exports.kinds.orders.failures import TIMEOUT
from exports.kinds.orders.source import Marks, Source, compiled

_AT_ONCE = 31
"""Days that one statement counts: few trips, and what is counted is kept when the time is over."""
_COUNT = "(SELECT count(*) FROM ({rows}) AS day_rows)"
_FOREVER = dt.datetime.max.replace(tzinfo=dt.UTC)


def look(source: Source, *, days: Sequence[dt.date], zone: zoneinfo.ZoneInfo, within_s: float) -> Preview:
    """Days that were not counted within `within_s` seconds are told as None."""
    deadline = time.monotonic() + within_s
    rows: dict[dt.date, int | None] = dict.fromkeys(days)
    try:
        for some in _batches(days):
            rows |= _count(source, some, zone=zone, deadline=deadline)
        sample = _sample(source, rows, zone=zone, deadline=deadline)
    except SourceUnavailable as failure:
        if failure.code != TIMEOUT:
            raise
        sample = None
    return Preview(
        rows={str(day): count for day, count in rows.items()},
        sample=sample,
        issues=tuple(_issues(source, days, zone=zone)),
    )


def _left_ms(deadline: float) -> int:
    """Raises: SourceUnavailable when nothing is left."""
    left_ms = round((deadline - time.monotonic()) * 1000)
    if left_ms <= 0:
        raise SourceUnavailable(TIMEOUT)
    return left_ms


def _batches(days: Sequence[dt.date]) -> Iterator[Sequence[dt.date]]:
    for first in range(0, len(days), _AT_ONCE):
        yield days[first : first + _AT_ONCE]


def _count(
    source: Source, days: Sequence[dt.date], *, zone: zoneinfo.ZoneInfo, deadline: float
) -> dict[dt.date, int | None]:
    """By the time alone: an index on it answers without the rows."""
    with guards.statement(limit_ms=_left_ms(deadline)) as connection, connection.cursor() as cursor:
        marks = Marks.of(source, connection)
        found = source.rows(connection).filter(source.within(marks)).order_by().values_list(source.key)
        rows = compiled(source, connection, found, marks)
        count = _COUNT.format(rows=rows.sql)
        parameters: list[Any] = []
        for day in days:
            start, end = windows.day_bounds(day, zone=zone)
            parameters += rows.parameters(start=source.time(connection, start), end=source.time(connection, end))
        cursor.execute(f"SELECT {', '.join([count] * len(days))}", parameters)
        return dict(zip(days, cursor.fetchone(), strict=True))


def _sample(
    source: Source, rows: dict[dt.date, int | None], *, zone: zoneinfo.ZoneInfo, deadline: float
) -> Shard | None:
    """The day with the fewest rows that has any."""
    counts = {day: count for day, count in rows.items() if count}
    if not counts:
        return None
    day = min(counts, key=lambda day: counts[day])
    return plan.day_now(source, day, zone=zone, limit_ms=_left_ms(deadline))


def _issues(source: Source, days: Sequence[dt.date], *, zone: zoneinfo.ZoneInfo) -> list[str]:
    issues = [] if inspection.has_time_index(source) else ["no_time_index"]
    if days[-1] >= dt.datetime.now(zone).date():
        issues.append("touches_now")
    return issues
