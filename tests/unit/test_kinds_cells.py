"""The parts of a cell's text that Python makes."""

import datetime as dt
import zoneinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.contracts import TimeForm
from exports.kinds.orders.cells import TimeFinisher, finish_float, finish_json


def text(cell: str, *, zone: str = "Asia/Shanghai", form: TimeForm = TimeForm.TEXT) -> str:
    return TimeFinisher(form=form, zone=zone, stored_zone="UTC")(cell.encode()).decode()


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("2026-09-01 00:30:00", "2026-09-01 08:30:00+08"),
        ("2026-09-01 00:30", "2026-09-01 08:30:00+08"),
        ("2026-09-01", "2026-09-01 08:00:00+08"),
        ("2026-09-01 00:30:00.100000", "2026-09-01 08:30:00.1+08"),
        ("2026-09-01 00:30:00+00:00", "2026-09-01 08:30:00+08"),
        ("9999-12-31 23:00:00.000000", "9999-12-31 23:00:00+00"),
        ("0000-00-00 00:00:00", ""),
        ("not a time at all", ""),
        ("", ""),
    ],
)
def test_stored_times_become_business_times(stored: str, shown: str) -> None:
    assert text(stored) == shown


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("2026-09-01 00:30:00", "46266.35416666667"),
        ("1900-02-28 15:00:00", "1900-02-28 23:05:43+08:05:43"),
        ("9999-12-31 15:59:59", "2958465.999988426"),
    ],
)
def test_serials_hold_what_a_spreadsheet_can(stored: str, shown: str) -> None:
    assert text(stored, form=TimeForm.SERIAL) == shown


@given(
    st.datetimes(dt.datetime(1905, 1, 1), dt.datetime(2037, 1, 1)),  # noqa: DTZ001  # stored without a zone
    st.sampled_from(["Asia/Shanghai", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
)
def test_the_kept_minutes_give_what_the_calendar_gives(stored: dt.datetime, zone: str) -> None:
    local = stored.replace(tzinfo=dt.UTC).astimezone(zoneinfo.ZoneInfo(zone))
    shown = text(stored.isoformat(" ", "microseconds"), zone=zone)
    wall, sign, offset = shown.rpartition("+" if "+" in shown else "-")
    assert dt.datetime.fromisoformat(wall) == local.replace(tzinfo=None)
    padded = offset if ":" in offset else offset + ":00"
    assert dt.datetime.fromisoformat(f"2000-01-01T00:00:00{sign}{padded}").utcoffset() == local.utcoffset()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_read_back_as_the_same_number(number: float) -> None:
    assert float(finish_float(repr(number).encode())) == number


def test_zero_has_no_sign() -> None:
    assert finish_float(b"-0") == finish_float(b"0.0") == b"0"


@pytest.mark.parametrize("cell", [b"", b"NaN", b"Infinity", b"-inf", b"1e999"])
def test_no_number_is_empty(cell: bytes) -> None:
    assert finish_float(cell) == b""


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ('{"b":1,"a":"\\u540d"}', '{"a": "名", "b": 1}'),
        ("null", "null"),
        ("", ""),
        ("{broken", "{broken"),
        ('"\\u001f"', '"\\u001f"'),
        ("[0.1, 1.50, 1e2, -1E-7, 123456789012345678901]", "[0.1, 1.5, 100.0, -1e-07, 123456789012345678901]"),
        ('{"b": 0.12345678901234567891, "a": 1}', '{"b": 0.12345678901234567891, "a": 1}'),
        ('{"b": 1e400}', '{"b": 1e400}'),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_json_has_one_spelling(given_text: str, shown: str) -> None:
    assert finish_json(given_text.encode()).decode() == shown
