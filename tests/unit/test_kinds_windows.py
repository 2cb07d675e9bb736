"""Calendar days as instants."""

import datetime as dt
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.kinds.orders.windows import day_bounds, day_start, days

ZONES = (
    "Asia/Shanghai",
    "America/New_York",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Asia/Beirut",
    "America/Havana",
)


def hours(day: str, zone: str) -> float:
    start, end = day_bounds(dt.date.fromisoformat(day), zone=zoneinfo.ZoneInfo(zone))
    return (end - start) / dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("day", "zone", "length"),
    [
        ("2026-09-14", "Asia/Shanghai", 24),
        ("2026-03-08", "America/New_York", 23),
        ("2026-11-01", "America/New_York", 25),
        ("2018-11-04", "America/Sao_Paulo", 23),
        ("2018-02-17", "America/Sao_Paulo", 25),
        ("2011-12-30", "Pacific/Apia", 0),
        ("2026-10-04", "Australia/Lord_Howe", 23.5),
    ],
)
def test_a_day_is_as_long_as_its_calendar_says(day: str, zone: str, length: float) -> None:
    assert hours(day, zone) == length


def test_a_day_without_midnight_starts_at_its_first_instant() -> None:
    start = day_start(dt.date(2018, 11, 4), zone=zoneinfo.ZoneInfo("America/Sao_Paulo"))
    assert start == dt.datetime(2018, 11, 4, 3, tzinfo=dt.UTC)
    assert start.astimezone(zoneinfo.ZoneInfo("America/Sao_Paulo")).hour == 1


def test_of_two_midnights_the_earlier_starts_the_day() -> None:
    start = day_start(dt.date(2026, 11, 1), zone=zoneinfo.ZoneInfo("America/Havana"))
    assert start == dt.datetime(2026, 11, 1, 4, tzinfo=dt.UTC)


def test_a_range_holds_both_ends() -> None:
    assert list(days(dt.date(2024, 2, 28), dt.date(2024, 3, 1))) == [
        dt.date(2024, 2, 28),
        dt.date(2024, 2, 29),
        dt.date(2024, 3, 1),
    ]


@given(st.dates(dt.date(1950, 1, 1), dt.date(2037, 1, 1)), st.sampled_from(ZONES))
def test_days_follow_each_other_without_gap_or_overlap(day: dt.date, zone: str) -> None:
    place = zoneinfo.ZoneInfo(zone)
    start, end = day_bounds(day, zone=place)
    assert day_bounds(day + dt.timedelta(days=1), zone=place)[0] == end
    assert start <= end
    assert end - start <= dt.timedelta(hours=25)
    if start < end:
        assert start.astimezone(place).date() == day
        assert (start - dt.timedelta(seconds=1)).astimezone(place).date() < day
