"""Calendar days of the business zone as UTC instants.

A day runs from its local 00:00 up to the next day's. Days of 23 and 25 hours come from the calendar, not
from adding 24 hours; a day whose 00:00 does not exist starts at the first instant that does; a day that the
zone skipped is empty.
"""

import datetime as dt
import zoneinfo
from collections.abc import Iterator


def days(first: dt.date, last: dt.date) -> Iterator[dt.date]:
    """Both ends included."""
    for number in range((last - first).days + 1):
        yield first + dt.timedelta(days=number)


def day_bounds(day: dt.date, *, zone: zoneinfo.ZoneInfo) -> tuple[dt.datetime, dt.datetime]:
    """Half-open, UTC."""
    return day_start(day, zone=zone), day_start(day + dt.timedelta(days=1), zone=zone)


def day_start(day: dt.date, *, zone: zoneinfo.ZoneInfo) -> dt.datetime:
    """First instant of a local day, UTC; of two midnights (clock put back over 00:00) the earlier."""
    midnight = dt.datetime.combine(day, dt.time(), tzinfo=zone)
    start = midnight.astimezone(dt.UTC)
    if start.astimezone(zone).replace(tzinfo=None) == midnight.replace(tzinfo=None):
        return start
    return _first_instant(day, zone=zone, near=start)


def _first_instant(day: dt.date, *, zone: zoneinfo.ZoneInfo, near: dt.datetime) -> dt.datetime:
    """Bisect for the second at which the local date first reaches `day`."""
    before, after = near - dt.timedelta(days=2), near + dt.timedelta(days=2)
    while after - before > dt.timedelta(seconds=1):
        middle = before + dt.timedelta(seconds=(after - before) // dt.timedelta(seconds=2))
        if middle.astimezone(zone).date() >= day:
            after = middle
        else:
            before = middle
    return after
