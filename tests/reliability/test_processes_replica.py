"""Reading from a streaming replica: behind the plan, and in conflict with its own recovery."""

import threading
from collections.abc import Iterator

import pytest

from exports.blocks import Block
from exports.contracts import Drift, ExportRequest, Format, TimeForm
from exports.errors import SourceUnavailable
from exports.kinds.orders import OrdersKind
from tests import databases, services
from tests.conftest import exports_settings, running
from tests.databases import OrdersDatabase, utc
from tests.reliability.replica import Replica, start_replica

SLOW_ROWS = "CREATE VIEW orders AS SELECT * FROM orders_rows WHERE pg_sleep(0.2) IS NOT NULL"
DAY = utc("2026-09-14 00:00:00").date()
ASKED = ExportRequest("orders", "owner", "r-1", DAY, DAY, Format.CSV)


@pytest.fixture(scope="module")
def replica(postgres: services.Postgres) -> Iterator[Replica]:
    with running(lambda folder: start_replica(folder, postgres, max_standby_streaming_delay="0")) as service:
        yield service


@pytest.fixture
def reader(replica: Replica) -> Iterator[str]:
    """An alias of the same orders, read from the replica."""
    databases.register("replica", {**replica.settings("orders"), "CONN_MAX_AGE": None})
    yield "replica"
    databases.forget("replica")


def page(kind: OrdersKind, shard: object, cursor: str = "", limit: int = 2000) -> Block:
    return kind.read(shard, cursor, limit, TimeForm.TEXT, frozenset())  # type: ignore[arg-type]


def test_a_replica_behind_the_plan_is_asked_again_and_never_ends_a_shard(
    postgres_orders: OrdersDatabase, postgres: services.Postgres, replica: Replica, reader: str
) -> None:
    """Without the check the page has 4 of 9 rows, one of them missing in the middle, and looks like the last one."""
    postgres_orders.insert({"id": number} for number in (1, 2, 4, 5))
    replica.catch_up(postgres)
    kind = OrdersKind()
    with replica.behind():
        postgres_orders.insert({"id": number} for number in (3, 6, 7, 8, 9))
        snapshot = kind.take_snapshot(ASKED)
        shard = kind.plan_shard(ASKED, snapshot, "2026-09-14")
        with exports_settings(database=reader):
            for ask in (
                lambda: page(kind, shard),
                lambda: page(kind, shard, "4"),
                lambda: kind.recount(shard, snapshot),
                lambda: kind.plan_shard(ASKED, snapshot, "2026-09-14"),
            ):
                with pytest.raises(SourceUnavailable) as caught:
                    ask()
                assert caught.value.code == "replica_conflict"
    replica.catch_up(postgres)
    with exports_settings(database=reader):
        assert page(kind, shard).rows == shard.planned == 9
        assert kind.recount(shard, snapshot).drift is Drift.EXACT


def test_a_plan_made_on_a_replica_is_read_there(
    postgres_orders: OrdersDatabase, postgres: services.Postgres, replica: Replica, reader: str
) -> None:
    """Rows that are younger than the plan's view are no part of it, wherever they are seen first."""
    postgres_orders.insert({"id": number} for number in (1, 2))
    replica.catch_up(postgres)
    kind = OrdersKind()
    with replica.behind():
        postgres_orders.insert([{"id": 3}])
        with exports_settings(database=reader):
            snapshot = kind.take_snapshot(ASKED)
            shard = kind.plan_shard(ASKED, snapshot, "2026-09-14")
            assert (snapshot.certain, page(kind, shard).rows) == (True, 2)
            assert kind.recount(shard, snapshot).drift is Drift.EXACT
    assert page(kind, shard).rows == 2


def test_a_deleted_last_order_is_no_lag(
    postgres_orders: OrdersDatabase, postgres: services.Postgres, replica: Replica, reader: str
) -> None:
    postgres_orders.insert({"id": number} for number in (1, 2, 3))
    kind = OrdersKind()
    snapshot = kind.take_snapshot(ASKED)
    shard = kind.plan_shard(ASKED, snapshot, "2026-09-14")
    postgres_orders.execute("DELETE FROM orders WHERE id = 3")
    replica.catch_up(postgres)
    with exports_settings(database=reader):
        assert page(kind, shard).rows == 2
        assert page(kind, shard, "2").rows == 0
        recount = kind.recount(shard, snapshot)
    assert (recount.drift, recount.difference) == (Drift.CHANGED, -1)


def test_a_page_that_recovery_cancels_is_read_again(
    postgres_orders: OrdersDatabase, postgres: services.Postgres, replica: Replica, reader: str
) -> None:
    postgres_orders.insert({"id": number} for number in range(1, 11))
    kind = OrdersKind()
    shard = kind.plan_shard(ASKED, kind.take_snapshot(ASKED), "2026-09-14")
    postgres_orders.execute("ALTER TABLE orders RENAME TO orders_rows")
    postgres_orders.execute(SLOW_ROWS)
    replica.catch_up(postgres)
    # Its replay needs the lock that the page's read holds.
    locking = "ALTER TABLE orders_rows ALTER COLUMN remark SET DEFAULT NULL"
    disturb = threading.Timer(0.5, postgres_orders.execute, [locking])
    try:
        disturb.start()
        with exports_settings(database=reader), pytest.raises(SourceUnavailable) as caught:
            page(kind, shard)
    finally:
        disturb.join()
        postgres_orders.execute("DROP VIEW orders")
        postgres_orders.execute("ALTER TABLE orders_rows RENAME TO orders")
    assert caught.value.code == "replica_conflict"
    replica.catch_up(postgres)
    with exports_settings(database=reader):
        assert page(kind, shard).rows == 10
