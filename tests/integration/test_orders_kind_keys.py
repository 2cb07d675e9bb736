"""Keys that do not rise with time: every row once, in the order of time and key, over the three databases."""

import datetime as dt
from itertools import pairwise
from typing import Any

import pytest
from django.db import connections

from exports.blocks import CELL, ROW
from exports.contracts import Drift, ExportRequest, Format, Shard, Snapshot, TimeForm
from exports.kinds.orders import OrdersKind
from tests import keyed_orders
from tests.databases import OrdersDatabase, utc
from tests.keyed_orders import CodedKind, UuidKind

NONE: frozenset[str] = frozenset()
DAY = dt.date(2026, 9, 14)
DAYS = ExportRequest("keyed", "owner", "r-1", DAY, DAY + dt.timedelta(days=1), Format.CSV)
NOON = utc("2026-09-14 04:00:00")
TICK = dt.timedelta(microseconds=1)


@pytest.fixture(params=keyed_orders.KINDS, ids=lambda kind: kind.name)
def cls(request: pytest.FixtureRequest, orders_db: OrdersDatabase) -> type[OrdersKind]:
    """A kind with its empty table."""
    kind: type[OrdersKind] = request.param
    keyed_orders.create(orders_db, kind)
    return kind


def plan(kind: OrdersKind) -> tuple[list[Shard], Snapshot]:
    snapshot = kind.take_snapshot(DAYS)
    return [kind.plan_shard(DAYS, snapshot, shard_id) for shard_id in kind.shard_ids(DAYS)], snapshot


def read(kind: OrdersKind, shard: Shard, *, cursor: str = "", limit: int = 2000) -> tuple[list[str], list[str]]:
    """Keys of the rows behind a cursor, and the cursors of their pages."""
    keys, cursors = [], []
    while (block := kind.read(shard, cursor, limit, TimeForm.TEXT, NONE)).rows:
        assert block.rows <= limit
        keys += [row.partition(CELL)[0].decode() for row in block.data.split(ROW)]
        cursor = block.last_key
        cursors.append(cursor)
    return keys, cursors


def fill(database: OrdersDatabase, cls: type[OrdersKind], *, seed: int = 1) -> list[str]:
    """Crowds of one time, rows a microsecond apart, both ends of a day; the keys in order."""
    times = [NOON] * 9 + [NOON + TICK * number for number in range(6)] + [NOON + TICK] * 5
    times += [utc("2026-09-13 16:00:00"), utc("2026-09-14 15:59:59.999999"), utc("2026-09-14 16:00:00")]
    times += [utc("2026-09-15 04:00:00.1")] * 8
    keyed_orders.insert(database, cls, zip(keyed_orders.new_keys(cls, len(times), seed=seed), times, strict=True))
    return keyed_orders.keys_in_order(database, cls)


def test_every_row_is_read_once_in_order_whatever_the_size_of_pages(
    orders_db: OrdersDatabase, cls: type[OrdersKind]
) -> None:
    expected = fill(orders_db, cls)
    kind = cls()
    shards, _ = plan(kind)
    assert [shard.planned for shard in shards] == [22, 9]
    for limit in range(1, 8):
        assert [key for shard in shards for key in read(kind, shard, limit=limit)[0]] == expected


def test_a_shard_goes_on_from_every_cursor(orders_db: OrdersDatabase, cls: type[OrdersKind]) -> None:
    fill(orders_db, cls)
    [shard, _], _ = plan(cls())
    keys, cursors = read(cls(), shard, limit=1)
    assert len(set(cursors)) == len(keys) == 22
    for done, cursor in enumerate(cursors, start=1):
        assert read(cls(), shard, cursor=cursor, limit=4)[0] == keys[done:]


def test_a_cursor_tells_key_and_time_as_people_read_them(orders_db: OrdersDatabase, cls: type[OrdersKind]) -> None:
    [key] = keyed_orders.new_keys(cls, 1)
    keyed_orders.insert(orders_db, cls, [(key, NOON + 17 * TICK)])
    [shard, empty], _ = plan(cls())
    shown = {"postgresql": "2026-09-14 12:00:00.000017+08"}.get(orders_db.vendor, "2026-09-14 04:00:00.000017")
    assert read(cls(), shard)[1] == [f"{key} @ {shown}"]
    assert cls().keys(shard) == (str(key), str(key))
    assert cls().keys(empty) == ("", "")


def test_rows_inserted_during_the_reads_hide_and_double_none(orders_db: OrdersDatabase, cls: type[OrdersKind]) -> None:
    expected = fill(orders_db, cls)[:22]
    kind = cls()
    [shard, _], snapshot = plan(kind)
    first = kind.read(shard, "", 12, TimeForm.TEXT, NONE)
    behind, at, ahead = keyed_orders.new_keys(cls, 3, seed=5)
    keyed_orders.insert(orders_db, cls, [(behind, NOON - TICK), (at, NOON + TICK), (ahead, NOON + 100 * TICK)])
    keys = [row.partition(CELL)[0].decode() for row in first.data.split(ROW)]
    keys += read(kind, shard, cursor=first.last_key, limit=3)[0]
    assert [key for key in keys if key in expected] == expected
    assert (str(behind) in keys, str(ahead) in keys) == (False, True)
    assert len(set(keys)) == len(keys)
    recount = kind.recount(shard, snapshot)
    assert (recount.drift, recount.difference) == (Drift.CHANGED, 3)


def test_the_last_row_of_the_plan_ends_the_day(orders_db: OrdersDatabase, cls: type[OrdersKind]) -> None:
    first, last, late = keyed_orders.new_keys(cls, 3)
    keyed_orders.insert(orders_db, cls, [(first, NOON), (last, NOON + TICK)])
    kind = cls()
    [shard, _], snapshot = plan(kind)
    keyed_orders.insert(orders_db, cls, [(late, NOON + 2 * TICK)])
    assert read(kind, shard)[0] == [str(first), str(last)]
    recount = kind.recount(shard, snapshot)
    assert (recount.drift, recount.difference) == (Drift.CHANGED, 1)


def test_rows_younger_than_the_plan_are_no_drift(orders_db: OrdersDatabase, cls: type[OrdersKind]) -> None:
    now = dt.datetime.now(dt.UTC)
    old, young = keyed_orders.new_keys(cls, 2)
    keyed_orders.insert(orders_db, cls, [(old, now - dt.timedelta(seconds=1))])
    asked = ExportRequest(
        "keyed", "o", "r", now.date() - dt.timedelta(days=1), now.date() + dt.timedelta(days=2), Format.CSV
    )
    kind = cls()
    snapshot = kind.take_snapshot(asked)
    shards = [kind.plan_shard(asked, snapshot, shard_id) for shard_id in kind.shard_ids(asked)]
    keyed_orders.insert(orders_db, cls, [(young, snapshot.as_of + TICK)])
    assert [key for shard in shards for key in read(kind, shard)[0]] == [str(old)]
    assert {kind.recount(shard, snapshot).drift for shard in shards} == {Drift.EXACT}


def test_another_key_in_the_same_number_of_rows_is_drift(orders_db: OrdersDatabase, cls: type[OrdersKind]) -> None:
    fill(orders_db, cls)
    kind = cls()
    [shard, _], snapshot = plan(kind)
    assert kind.recount(shard, snapshot).drift is Drift.EXACT
    table, key = keyed_orders.names(cls)
    [gone, new] = keyed_orders.new_keys(cls, 1) + keyed_orders.new_keys(cls, 1, seed=9)
    orders_db.execute(
        f"UPDATE {table} SET {key} = %s WHERE {key} = %s",
        (keyed_orders.stored_key(orders_db, new), keyed_orders.stored_key(orders_db, gone)),
    )
    recount = kind.recount(shard, snapshot)
    assert (recount.drift, recount.difference) == (Drift.CHANGED, 0)


def test_a_deleted_last_row_ends_the_day_by_an_empty_page(orders_db: OrdersDatabase, cls: type[OrdersKind]) -> None:
    keys = keyed_orders.new_keys(cls, 3)
    keyed_orders.insert(orders_db, cls, zip(keys, (NOON, NOON + TICK, NOON + 2 * TICK), strict=True))
    kind = cls()
    [shard, _], _ = plan(kind)
    table, key = keyed_orders.names(cls)
    orders_db.execute(f"DELETE FROM {table} WHERE {key} = %s", (keyed_orders.stored_key(orders_db, keys[2]),))
    assert read(kind, shard, limit=2)[0] == [str(key) for key in keys[:2]]


def test_a_masked_key_still_turns_the_pages(orders_db: OrdersDatabase, cls: type[OrdersKind]) -> None:
    expected = fill(orders_db, cls)[:22]
    kind, cursor, found = cls(), "", []
    [shard, _], _ = plan(kind)
    masked = frozenset({kind.columns[0].name})
    while (block := kind.read(shard, cursor, 5, TimeForm.TEXT, masked)).rows:
        cursor = block.last_key
        found += [cursor.rpartition(" @ ")[0]]
        assert {row.partition(CELL)[0] for row in block.data.split(ROW)} == {b"***"}
    assert found == [expected[at] for at in (4, 9, 14, 19, 21)]


def test_keys_of_any_text_turn_the_pages(orders_db: OrdersDatabase) -> None:
    keyed_orders.create(orders_db, CodedKind)
    keyed_orders.insert(orders_db, CodedKind, [(code, NOON) for code in keyed_orders.ODD_CODES])
    expected = keyed_orders.keys_in_order(orders_db, CodedKind)
    assert sorted(expected) == sorted(keyed_orders.ODD_CODES)
    [shard, _], _ = plan(CodedKind())
    for limit in (1, 3):
        assert read(CodedKind(), shard, limit=limit)[0] == expected


def test_a_key_with_a_separator_turns_the_page_and_is_shown_repaired(orders_db: OrdersDatabase) -> None:
    keyed_orders.create(orders_db, CodedKind)
    keyed_orders.insert(orders_db, CodedKind, [(code, NOON) for code in ("a", "b\x1fc\x1ed", "e")])
    kind = CodedKind()
    [shard, _], _ = plan(kind)
    assert read(kind, shard, limit=2)[0] == ["a", "b\N{REPLACEMENT CHARACTER}c\N{REPLACEMENT CHARACTER}d", "e"]
    assert kind.read(shard, "", 2, TimeForm.TEXT, NONE).replaced == ("b\x1fc\x1ed",)


def test_a_page_begins_in_the_index_and_not_at_the_start_of_the_day(orders_db: OrdersDatabase) -> None:
    keyed_orders.create(orders_db, UuidKind)
    fill(orders_db, UuidKind)
    kind = UuidKind()
    [shard, _], _ = plan(kind)
    seen: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        seen.append((sql, parameters))
        return execute(sql, parameters, many, context)

    read(kind, shard)
    with connections[orders_db.alias].execute_wrapper(note):
        cursors = read(kind, shard, limit=6)[1]
    assert [sql.count("LIMIT %s") for sql, _ in seen] == [1] * len(cursors)
    assert len({sql for sql, _ in seen[1:]}) == 1
    starts = [parameters[0] for _, parameters in seen[1:]]
    assert starts == [cursor.rpartition(" @ ")[2] for cursor in cursors[:-1]]
    assert all(before <= after for before, after in pairwise(starts))
