"""What a task says of itself while it runs, poll by poll, against its rows; and that changed rows are neither lost nor doubled."""

import csv
import datetime as dt
import io
from collections.abc import Callable

import pytest

from exports.contracts import Shard, State
from exports.errors import SourceUnavailable
from exports.views import TaskView
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.kinds import FlakyOrders

pytestmark = pytest.mark.usefixtures("desk")

DAY = "2026-09-14"


def fill(database: OrdersDatabase, rows: int, *, start: int = 1, **cells: object) -> None:
    database.insert({"id": number, **cells} for number in range(start, start + rows))


def polled(task_id: str) -> tuple[TaskView, list[TaskView]]:
    """The ended task, and what was seen of it before every page."""
    seen: list[TaskView] = []
    FlakyOrders.before_read.append(lambda *_: seen.append(pipeline.view(task_id)))
    found = pipeline.work(task_id, between=lambda: seen.append(pipeline.view(task_id)))
    return found, [*seen, found]


def assert_steady(seen: list[TaskView]) -> None:
    """Between 0 and the total, and never back."""
    counts = [view.processed for view in seen]
    assert counts == sorted(counts)
    assert all(view.processed <= view.total for view in seen if view.total is not None)
    assert all(view.total is not None for view in seen if view.processed)


def rows_of(task_id: str) -> list[list[str]]:
    text = pipeline.read_file(task_id).decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))[1:]


def on_page(number: int, action: Callable[[], object]) -> Callable[[Shard, str, int], None]:
    """A fault that acts once, before the page with this number, from 1."""
    reads: list[str] = []

    def fault(_: Shard, cursor: str, __: int) -> None:
        reads.append(cursor)
        if len(reads) == number:
            action()

    return fault


def test_progress_never_leaves_its_bounds_while_orders_come_in(orders_db: OrdersDatabase) -> None:
    """H061. The day is today: orders younger than the plan do not belong to the export."""
    now = dt.datetime.now(dt.UTC)
    today = now.astimezone(dt.timezone(dt.timedelta(hours=8))).date().isoformat()
    fill(orders_db, 4100, created_at=now - dt.timedelta(microseconds=1))
    late = on_page(1, lambda: fill(orders_db, 100, start=4101, created_at=dt.datetime.now(dt.UTC)))
    FlakyOrders.before_read.append(late)
    with exports_settings(page_rows=500):
        task_id = pipeline.submit(today, today)
        found, seen = polled(task_id)
    assert_steady(seen)
    assert (found.state, found.processed, found.total) == (State.SUCCEEDED, 4100, 4100)
    assert len({view.processed for view in seen}) >= 8
    assert [int(row[0]) for row in rows_of(task_id)] == list(range(1, 4101))


def test_the_total_counts_the_window_alone(orders_db: OrdersDatabase) -> None:
    """H062"""
    times = [
        dt.datetime.fromisoformat("2026-09-10T04:00:00+00:00") + dt.timedelta(hours=8 * hour) for hour in range(27)
    ]
    orders_db.insert({"id": number, "created_at": at} for number, at in enumerate(times, start=1))
    found = pipeline.work(pipeline.submit(DAY, DAY))
    assert (found.processed, found.total) == (3, 3)


def test_a_page_that_is_tried_again_counts_once(orders_db: OrdersDatabase) -> None:
    """H063"""
    fill(orders_db, 3000)
    failures = iter(range(2))

    def fault(_: Shard, cursor: str, __: int) -> None:
        if cursor and next(failures, None) is not None:
            raise SourceUnavailable("database_timeout")

    FlakyOrders.before_read.append(fault)
    task_id = pipeline.submit(DAY, DAY)
    found, seen = polled(task_id)
    assert_steady(seen)
    assert (found.state, found.processed, found.total) == (State.SUCCEEDED, 3000, 3000)
    assert [int(row[0]) for row in rows_of(task_id)] == list(range(1, 3001))
    assert [cursor for _, cursor, _ in FlakyOrders.reads].count("2000") == 3


def test_rows_that_change_while_they_are_exported_stand_once_and_whole(orders_db: OrdersDatabase) -> None:
    """H011. 50 rows behind the cursor and 50 before it change in two columns at once."""
    fill(orders_db, 6000, status="paid", remark="was paid")
    chosen = range(60, 6001, 60)
    change = f"UPDATE orders SET status = 'sent', remark = 'was sent' WHERE id IN ({', '.join(map(str, chosen))})"
    FlakyOrders.before_read.append(on_page(3, lambda: orders_db.execute(change)))
    with exports_settings(page_rows=1500):
        task_id = pipeline.submit(DAY, DAY)
        found = pipeline.work(task_id)
    assert (found.state, found.processed) == (State.SUCCEEDED, 6000)
    rows = rows_of(task_id)
    assert [int(row[0]) for row in rows] == list(range(1, 6001))
    assert {(row[4], row[13]) for row in rows} == {("paid", "was paid"), ("sent", "was sent")}
    assert [int(row[0]) for row in rows if row[4] == "sent"] == [number for number in chosen if number > 3000]
