"""Orders that are inserted, changed and deleted while they are exported: every row of the file is explained."""

import csv
import datetime as dt
import io
import threading
import time
from dataclasses import dataclass, field

import psycopg
import pytest

from exports.contracts import Drift, State
from exports.kinds.orders.bounds import Limits
from exports.pipeline import constants
from exports.state.store import store
from tests import pipeline, services
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.kinds import FlakyOrders
from tests.reliability.writer import DAYS, FIRST, History, Writer, day_of, order

pytestmark = pytest.mark.usefixtures("desk")

WINDOW = (FIRST.isoformat(), (FIRST + dt.timedelta(days=DAYS - 1)).isoformat())
ROUNDS = [5, pytest.param(100, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
Cursors = list[tuple[int, float]]


@dataclass(slots=True)
class Watch:
    """When the next export asks the database what. A question's answer lies between it and the next question."""

    task_id: str = ""
    largest: int = 0
    moments: list[float] = field(default_factory=list)
    planned: dict[str, float] = field(default_factory=dict)
    reads: dict[str, Cursors] = field(default_factory=dict)
    recounted: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        FlakyOrders.before_plan[:] = [self.plan]
        FlakyOrders.before_read[:] = [lambda shard, cursor, _: self.read(shard.id, cursor)]
        FlakyOrders.before_recount[:] = [self.recount]

    def plan(self, shard_id: str) -> None:
        self.planned[shard_id] = self._tick()

    def read(self, shard_id: str, cursor: str) -> None:
        if not self.largest:
            self.largest = int(Limits.of(constants.load_snapshot(store().snapshot(self.task_id))).key)
        self.reads.setdefault(shard_id, []).append((int(cursor or 0), self._tick()))
        time.sleep(0.002)  # the writer's turn

    def recount(self, shard_id: str) -> None:
        self.recounted[shard_id] = self._tick()

    def _tick(self) -> float:
        self.moments.append(time.monotonic())
        return self.moments[-1]

    def span(self, asked: float) -> tuple[float, float]:
        return asked, next(moment for moment in self.moments if moment > asked)

    def span_of(self, order_id: int) -> tuple[float, float]:
        """Of the page whose keys an order's key is among."""
        reads = self.reads[day_of(order_id).isoformat()]
        return self.span([asked for cursor, asked in reads if cursor < order_id][-1])


@pytest.mark.parametrize("rounds", ROUNDS)
def test_every_row_is_explained_by_the_commits_around_its_read(orders_db: OrdersDatabase, rounds: int) -> None:
    if orders_db.vendor == "sqlite":
        orders_db.execute("PRAGMA journal_mode = WAL")
    writer = Writer(orders_db)
    changed = 0
    for _ in range(rounds):
        watch = Watch()
        with exports_settings(page_rows=20, page_rows_min=20, settle_lag_s=0, xmin_wait_s=5), writer.at_work():
            watch.task_id = pipeline.submit(*WINDOW)
            assert pipeline.work(watch.task_id).state is State.SUCCEEDED
        watch.recount("the end")
        rows = {int(row[0]): row[-1] for row in csv_rows(pipeline.read_file(watch.task_id))}
        explain_rows(rows, writer.history, watch)
        changed += explain_drift(rows, writer.history, watch)
    assert changed > 0


def csv_rows(data: bytes) -> list[list[str]]:
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))[1:]
    ids = [int(row[0]) for row in rows]
    assert ids == sorted(set(ids))
    return rows


def explain_rows(rows: dict[int, str], history: History, watch: Watch) -> None:
    """A row is there as it was when its page was read; a row of the plan is missing only if it was not there then."""
    assert rows.keys() <= history.versions.keys()
    for order_id in history.versions:
        if order_id > watch.largest:
            assert order_id not in rows
            continue
        possible = history.possible(order_id, *watch.span_of(order_id))
        if order_id in rows:
            assert rows[order_id] in possible, (order_id, rows[order_id], possible)
        elif None not in history.possible(order_id, *watch.span(watch.planned[day_of(order_id).isoformat()])):
            assert None in possible, (order_id, possible)


def explain_drift(rows: dict[int, str], history: History, watch: Watch) -> int:
    """Planned, written and drifted rows of each shard agree with the commits; how many shards drifted."""
    shards = store().shards(watch.task_id)
    for shard in shards:
        day = dt.date.fromisoformat(shard.shard_id)
        assert shard.drift is not None
        assert shard.rows_written == sum(day_of(order_id) == day for order_id in rows)
        least, most = history.count(day, *watch.span(watch.planned[shard.shard_id]), largest=watch.largest)
        assert least <= shard.planned <= most
        least, most = history.count(day, *watch.span(watch.recounted[shard.shard_id]), largest=watch.largest)
        now = shard.planned + shard.drift.difference
        if shard.drift.drift is Drift.EXACT:
            assert least <= now <= most
            assert now == shard.rows_written
        else:
            assert least <= now <= most or now == shard.rows_written
    view = pipeline.view(watch.task_id)
    assert view.drift is not None
    assert view.drift.difference == sum(shard.drift.difference for shard in shards if shard.drift)
    return sum(shard.drift is not None and shard.drift.drift is Drift.CHANGED for shard in shards)


def test_a_row_whose_commit_comes_late_is_waited_for(
    postgres_orders: OrdersDatabase, postgres: services.Postgres
) -> None:
    """Its id was given before those of rows that are committed: a page behind it would never come back to it."""
    postgres_orders.insert(order(order_id, "early") for order_id in (2, 4))
    with psycopg.connect(postgres.dsn("orders")) as late:
        insert_late(late, order_id=3)
        timer = threading.Timer(0.5, late.commit)
        timer.start()
        with exports_settings(xmin_wait_s=20):
            task_id = pipeline.submit(*WINDOW)
            view = pipeline.work(task_id)
        timer.join()
    assert view.drift is not None and view.drift.drift is Drift.EXACT
    assert [row[0] for row in csv_rows(pipeline.read_file(task_id))] == ["2", "3", "4"]


@pytest.mark.parametrize("committed", [True, False])
def test_a_row_whose_commit_is_not_waited_for_is_reported(
    postgres_orders: OrdersDatabase, postgres: services.Postgres, committed: bool
) -> None:
    postgres_orders.insert(order(order_id, "early") for order_id in (2, 4))
    with psycopg.connect(postgres.dsn("orders")) as late:
        insert_late(late, order_id=3)
        if committed:
            FlakyOrders.before_recount.append(lambda _: late.commit())
        with exports_settings(xmin_wait_s=0):
            task_id = pipeline.submit(*WINDOW)
            view = pipeline.work(task_id)
        late.rollback()
    assert view.state is State.SUCCEEDED and view.drift is not None
    assert (view.drift.drift, view.drift.difference) == (Drift.UNKNOWN, 1 if committed else 0)
    assert [row[0] for row in csv_rows(pipeline.read_file(task_id))] == ["2", "4"]


def insert_late(connection: "psycopg.Connection[tuple[object, ...]]", *, order_id: int) -> None:
    """Not committed."""
    row = order(order_id, "late")
    names = ", ".join(row)
    marks = ", ".join(["%s"] * len(row))
    connection.execute(f"INSERT INTO orders ({names}) VALUES ({marks})", list(row.values()))
