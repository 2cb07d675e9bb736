"""One contract for the orders kind over SQLite, PostgreSQL and MariaDB: which rows, in which order, in which days."""

import datetime as dt
import os
import random
import time
from collections.abc import Iterator

import pytest

from exports import kinds
from exports.blocks import CELL, ROW, Block
from exports.contracts import Drift, ExportRequest, Format, Shard, TimeForm
from exports.kinds.base import Kind
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc

NONE: frozenset[str] = frozenset()
DAY = dt.date(2026, 9, 14)
NOON = utc("2026-09-14 04:00:00")


def request(first: dt.date, last: dt.date | None = None) -> ExportRequest:
    return ExportRequest("orders", "owner", "r-1", first, last or first, Format.CSV)


def plan(kind: Kind, asked: ExportRequest) -> list[Shard]:
    snapshot = kind.take_snapshot(asked)
    return [kind.plan_shard(asked, snapshot, shard_id) for shard_id in kind.shard_ids(asked)]


def blocks(kind: Kind, shard: Shard, *, limit: int = 2000, form: TimeForm = TimeForm.TEXT) -> Iterator[Block]:
    cursor = ""
    while (block := kind.read(shard, cursor, limit, form, NONE)).rows:
        yield block
        cursor = block.last_key


def rows(kind: Kind, asked: ExportRequest, *, limit: int = 2000, form: TimeForm = TimeForm.TEXT) -> list[list[str]]:
    """All rows as lists of cells."""
    return [
        line.decode().split(CELL.decode())
        for shard in plan(kind, asked)
        for block in blocks(kind, shard, limit=limit, form=form)
        for line in block.data.split(ROW)
    ]


def ids(kind: Kind, asked: ExportRequest, *, limit: int = 2000) -> list[int]:
    return [int(cells[0]) for cells in rows(kind, asked, limit=limit)]


@pytest.fixture
def orders(orders_db: OrdersDatabase) -> Kind:
    assert orders_db.alias
    return kinds.get("orders")


def test_orders_of_one_timestamp_survive_every_page_edge(orders_db: OrdersDatabase, orders: Kind) -> None:  # H001
    orders_db.insert({"id": number, "created_at": NOON} for number in range(1, 4002))
    [shard] = plan(orders, request(DAY))
    pages = list(blocks(orders, shard))
    assert [page.rows for page in pages] == [2000, 2000, 1]
    assert [page.last_key for page in pages] == ["2000", "4000", "4001"]
    assert ids(orders, request(DAY)) == list(range(1, 4002))


def test_cursor_condition_and_order_use_the_same_key(orders_db: OrdersDatabase, orders: Kind) -> None:  # H002
    seconds = {1: 1, 2: 2, 3: 2, 4: 2, 5: 2, 6: 3, 7: 3}
    orders_db.insert({"id": number, "created_at": utc(f"2026-09-14 10:00:0{at}")} for number, at in seconds.items())
    assert ids(orders, request(DAY), limit=3) == [1, 2, 3, 4, 5, 6, 7]


def test_rows_stand_in_key_order_whatever_the_order_of_their_insertion(
    orders_db: OrdersDatabase, orders: Kind
) -> None:  # H003
    for number in (70, 11, 42, 13, 99, 54, 25):
        orders_db.add(number, created_at=NOON)
    assert ids(orders, request(DAY), limit=2) == [11, 13, 25, 42, 54, 70, 99]


def test_rows_a_microsecond_apart_are_kept_apart(orders_db: OrdersDatabase, orders: Kind) -> None:  # H004
    orders_db.insert(
        {"id": number, "created_at": NOON + dt.timedelta(microseconds=number)} for number in range(1, 2002)
    )
    times = [cells[2] for cells in rows(orders, request(DAY))]
    assert len(set(times)) == 2001
    assert times[-1] == "2026-09-14 12:00:00.002001+08"


def test_null_drops_no_row_and_is_empty(orders_db: OrdersDatabase, orders: Kind) -> None:  # H005
    orders_db.insert({"id": number, "paid_at": None, "remark": None} for number in range(1, 2002))
    found = rows(orders, request(DAY))
    assert len(found) == 2001
    assert {(cells[3], cells[13]) for cells in found} == {("", "")}


def test_keys_are_numbers_so_that_no_collation_decides_their_order(
    orders_db: OrdersDatabase, orders: Kind
) -> None:  # H006
    for number in (9, 10, 100, 99):
        orders_db.add(number)
    assert ids(orders, request(DAY), limit=1) == [9, 10, 99, 100]


def test_counts_around_the_page_size_are_complete(orders_db: OrdersDatabase, orders: Kind) -> None:  # H007
    starts = {0: 1, 1: 2000, 2: 4000}
    counts = {0: 1999, 1: 2000, 2: 2001}
    orders_db.insert(
        {"id": starts[day] + number, "created_at": NOON + dt.timedelta(days=day)}
        for day in range(3)
        for number in range(counts[day])
    )
    asked = request(DAY, DAY + dt.timedelta(days=2))
    assert [shard.planned for shard in plan(orders, asked)] == [1999, 2000, 2001]
    assert ids(orders, asked) == list(range(1, 6001))


def test_the_set_of_keys_is_that_of_the_database(orders_db: OrdersDatabase, orders: Kind) -> None:  # H008
    chosen = random.Random(7).sample(range(1, 10**12), 2700)
    orders_db.insert({"id": number} for number in chosen)
    found = ids(orders, request(DAY), limit=500)
    assert found == sorted(chosen)


def test_a_row_inserted_after_the_plan_changes_no_page(orders_db: OrdersDatabase, orders: Kind) -> None:  # H010
    orders_db.insert({"id": number} for number in range(1, 6))
    [shard] = plan(orders, request(DAY))
    first = orders.read(shard, "", 2, TimeForm.TEXT, NONE)
    orders_db.add(6, created_at=utc("2026-09-14 03:00:00"))
    rest = orders.read(shard, first.last_key, 200, TimeForm.TEXT, NONE)
    assert (rest.rows, rest.last_key) == (3, "5")
    assert orders.read(shard, "5", 200, TimeForm.TEXT, NONE).rows == 0


def test_a_row_deleted_after_the_plan_is_drift_of_minus_one(orders_db: OrdersDatabase, orders: Kind) -> None:  # H013
    orders_db.insert({"id": number} for number in range(1, 11))
    asked = request(DAY)
    snapshot = orders.take_snapshot(asked)
    shard = orders.plan_shard(asked, snapshot, "2026-09-14")
    orders_db.execute("DELETE FROM orders WHERE id IN (7, 10)")
    assert [block.rows for block in blocks(orders, shard, limit=4)] == [4, 4]
    recount = orders.recount(shard, snapshot)
    assert (recount.drift, recount.difference) == (Drift.CHANGED, -2)


def test_rows_that_changed_places_are_drift_even_when_the_count_is_the_same(
    orders_db: OrdersDatabase, orders: Kind
) -> None:
    orders_db.insert({"id": number} for number in (1, 2, 4, 9))
    asked = request(DAY)
    snapshot = orders.take_snapshot(asked)
    shard = orders.plan_shard(asked, snapshot, "2026-09-14")
    orders_db.execute("DELETE FROM orders WHERE id = 2")
    orders_db.add(3)
    recount = orders.recount(shard, snapshot)
    assert (recount.drift, recount.difference) == (Drift.CHANGED, 0)


def test_an_untouched_day_has_no_drift(orders_db: OrdersDatabase, orders: Kind) -> None:
    orders_db.insert({"id": number} for number in range(1, 4))
    asked = request(DAY)
    snapshot = orders.take_snapshot(asked)
    shard = orders.plan_shard(asked, snapshot, "2026-09-14")
    orders_db.add(4)
    assert orders.recount(shard, snapshot).drift is Drift.EXACT


def test_a_day_without_orders_is_an_empty_shard(orders: Kind) -> None:  # H060
    [shard] = plan(orders, request(DAY))
    assert shard.planned == 0
    assert orders.read(shard, "", 2000, TimeForm.TEXT, NONE) == Block(b"", 0, "")


def test_a_one_day_range_is_valid_and_its_last_day_is_included(orders_db: OrdersDatabase, orders: Kind) -> None:  # H014
    with exports_settings(business_zone="UTC"):
        for number, at in enumerate(("00:00:00", "12:00:00", "23:59:59"), start=1):
            orders_db.add(number, created_at=utc(f"2026-09-10 {at}"))
        assert orders.shard_ids(request(dt.date(2026, 9, 10))) == ["2026-09-10"]
        assert ids(orders, request(dt.date(2026, 9, 10))) == [1, 2, 3]


def test_adjoining_ranges_share_nothing_and_lose_nothing(orders_db: OrdersDatabase, orders: Kind) -> None:  # H015
    orders_db.add(1, created_at=utc("2026-09-07 16:00:00"))
    assert ids(orders, request(dt.date(2026, 9, 1), dt.date(2026, 9, 7))) == []
    assert ids(orders, request(dt.date(2026, 9, 8), dt.date(2026, 9, 14))) == [1]


def test_the_last_fraction_of_the_last_second_belongs_to_the_day(
    orders_db: OrdersDatabase, orders: Kind
) -> None:  # H016
    orders_db.add(1, created_at=utc("2026-09-30 15:59:59.500000"))
    found = rows(orders, request(dt.date(2026, 9, 30)))
    assert [cells[2] for cells in found] == ["2026-09-30 23:59:59.5+08"]


def test_a_leap_day_is_one_shard(orders: Kind) -> None:  # H017
    assert orders.shard_ids(request(dt.date(2024, 2, 29))) == ["2024-02-29"]


def test_a_future_day_is_planned_with_no_rows(orders_db: OrdersDatabase, orders: Kind) -> None:  # H018
    orders_db.add(1, created_at=utc("2200-01-01 04:00:00"))
    assert ids(orders, request(dt.date(2200, 1, 1))) == []


def test_day_edges_follow_the_business_zone(orders_db: OrdersDatabase, orders: Kind) -> None:  # H019
    orders_db.add(1, created_at=utc("2026-08-31 18:29:59"))
    orders_db.add(2, created_at=utc("2026-08-31 18:30:00"))
    with exports_settings(business_zone="Asia/Kolkata"):
        reopen(orders_db)
        found = rows(orders, request(dt.date(2026, 9, 1)))
    assert [(cells[0], cells[2]) for cells in found] == [("2", "2026-09-01 00:00:00+05:30")]


def test_the_host_zone_changes_nothing(
    orders_db: OrdersDatabase, orders: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:  # H020
    orders_db.insert({"id": number, "created_at": NOON + dt.timedelta(hours=number)} for number in range(1, 30))
    found = []
    for zone in ("UTC", "Asia/Tokyo"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        reopen(orders_db)
        found.append(rows(orders, request(DAY, DAY + dt.timedelta(days=1))))
    monkeypatch.undo()
    time.tzset()
    assert os.environ.get("TZ") != "Asia/Tokyo"
    assert len(found[0]) == 29
    assert found[0] == found[1]


def test_text_and_serial_show_the_same_wall_clock(orders_db: OrdersDatabase, orders: Kind) -> None:  # H021
    orders_db.add(1, created_at=utc("2026-09-05 01:30:00"))
    with exports_settings(business_zone="America/Sao_Paulo"):
        reopen(orders_db)
        day = request(dt.date(2026, 9, 4))
        assert rows(orders, day)[0][2] == "2026-09-04 22:30:00-03"
        assert rows(orders, day, form=TimeForm.SERIAL)[0][2] == "46269.9375"


def test_a_day_of_23_hours_comes_from_the_calendar(orders_db: OrdersDatabase, orders: Kind) -> None:  # H022
    for number, at in enumerate(("2026-03-08 05:00:00", "2026-03-09 03:59:59", "2026-03-09 04:00:00"), start=1):
        orders_db.add(number, created_at=utc(at))
    with exports_settings(business_zone="America/New_York"):
        reopen(orders_db)
        assert ids(orders, request(dt.date(2026, 3, 8))) == [1, 2]


def test_the_doubled_hour_is_whole_and_told_apart(orders_db: OrdersDatabase, orders: Kind) -> None:  # H023
    for number, at in enumerate(("2026-11-01 05:30:00", "2026-11-01 06:30:00", "2026-11-02 04:30:00"), start=1):
        orders_db.add(number, created_at=utc(at))
    with exports_settings(business_zone="America/New_York"):
        reopen(orders_db)
        found = rows(orders, request(dt.date(2026, 11, 1)))
    assert [cells[2] for cells in found] == [
        "2026-11-01 01:30:00-04",
        "2026-11-01 01:30:00-05",
        "2026-11-01 23:30:00-05",
    ]


def test_every_instant_around_a_clock_change_is_in_one_shard(orders_db: OrdersDatabase, orders: Kind) -> None:  # H024
    start = utc("2026-10-31 04:00:00")
    orders_db.insert({"id": hour + 1, "created_at": start + dt.timedelta(hours=hour)} for hour in range(73))
    with exports_settings(business_zone="America/New_York"):
        reopen(orders_db)
        asked = request(dt.date(2026, 10, 31), dt.date(2026, 11, 2))
        assert orders.shard_ids(asked) == ["2026-10-31", "2026-11-01", "2026-11-02"]
        assert [shard.planned for shard in plan(orders, asked)] == [24, 25, 24]
        assert ids(orders, asked) == list(range(1, 74))


def test_zero_dates_are_empty(orders_db: OrdersDatabase, orders: Kind) -> None:  # H059
    orders_db.insert({"id": number, "paid_at": NOON} for number in (1, 2, 3))
    if orders_db.vendor == "postgresql":
        orders_db.execute("UPDATE orders SET paid_at = '-infinity' WHERE id = 2")
    else:
        orders_db.execute("UPDATE orders SET paid_at = '0000-00-00 00:00:00' WHERE id = 2")
    for form, shown in ((TimeForm.TEXT, "2026-09-14 12:00:00+08"), (TimeForm.SERIAL, "46279.5")):
        assert [cells[3] for cells in rows(orders, request(DAY), form=form)] == [shown, "", shown]


def test_rows_younger_than_the_settle_lag_are_left_out(orders_db: OrdersDatabase, orders: Kind) -> None:
    now = dt.datetime.now(dt.UTC)
    for number, age in enumerate((3600, 120, 5), start=1):
        orders_db.add(number, created_at=now - dt.timedelta(seconds=age))
    asked = request((now - dt.timedelta(days=1)).date(), (now + dt.timedelta(days=2)).date())
    with exports_settings(settle_lag_s=60):
        assert ids(orders, asked) == [1, 2]
        past = orders.take_snapshot(request(DAY))
    assert abs((past.as_of - now).total_seconds()) < 30
    assert ids(orders, asked) == [1, 2, 3]


def test_the_file_stem_names_both_days(orders: Kind) -> None:
    assert orders.file_stem(request(dt.date(2026, 9, 1), dt.date(2026, 9, 30))) == "订单_2026-09-01_2026-09-30"


def reopen(database: OrdersDatabase) -> None:
    """A session takes the zone when it opens."""
    from django.db import connections

    connections[database.alias].close()
