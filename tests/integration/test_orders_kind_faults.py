"""Faults of the source: lost connections, time limits, replicas, pages too large; and the shape of a page's SQL."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pymysql
import pytest
from django.db import connections

from exports.blocks import CELL, ROW, Block
from exports.contracts import Drift, ExportRequest, Format, Shard, Snapshot, TimeForm
from exports.errors import PageTooLarge, SourceUnavailable, StepBroken
from exports.kinds.orders import OrdersKind, guards
from tests import databases
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.proxy import CuttingProxy
from tests.services import MariaDB, Postgres

NONE: frozenset[str] = frozenset()
DAY = utc("2026-09-14 00:00:00").date()
ASKED = ExportRequest("orders", "owner", "r-1", DAY, DAY, Format.CSV)


def plan(kind: OrdersKind) -> tuple[Shard, Snapshot]:
    snapshot = kind.take_snapshot(ASKED)
    return kind.plan_shard(ASKED, snapshot, "2026-09-14"), snapshot


def page(kind: OrdersKind, shard: Shard, cursor: str = "", limit: int = 2000) -> Block:
    return kind.read(shard, cursor, limit, TimeForm.TEXT, NONE)


def statements(alias: str, work: Callable[[], Any]) -> list[str]:
    """SQL of every statement that `work` runs."""
    seen: list[str] = []

    def note(execute: Any, sql: str, parameters: Any, many: bool, context: Any) -> Any:
        seen.append(sql)
        return execute(sql, parameters, many, context)

    with connections[alias].execute_wrapper(note):
        work()
    return seen


def test_a_page_is_one_statement_with_a_limit_and_no_offset(orders_db: OrdersDatabase) -> None:  # H115
    orders_db.insert({"id": number} for number in range(1, 6))
    kind = OrdersKind()
    shard, _ = plan(kind)
    page(kind, shard, "", 2)
    [sql] = statements(orders_db.alias, lambda: page(kind, shard, "2", 2))
    assert sql.count("LIMIT %s") == 1
    assert "OFFSET" not in sql.upper()
    assert " > %s" in sql


def test_pages_of_a_shard_share_their_statement(orders_db: OrdersDatabase) -> None:
    orders_db.insert({"id": number} for number in range(1, 8))
    kind = OrdersKind()
    shard, _ = plan(kind)
    texts = statements(orders_db.alias, lambda: [page(kind, shard, cursor, 2) for cursor in ("2", "4", "6")])
    assert len(set(texts[-2:])) == 1


def test_a_connection_is_asked_whether_it_lives_when_it_was_idle_alone(
    server_orders: OrdersDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Django's health checks, which production has on, would cost each page another round trip."""
    databases.register(
        server_orders.alias, {**server_orders.settings, "CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}
    )
    server_orders.insert({"id": number} for number in range(1, 6))
    kind = OrdersKind()
    shard, _ = plan(kind)
    connection, asked = connections[server_orders.alias], []
    is_usable = connection.is_usable
    monkeypatch.setattr(connection, "is_usable", lambda: asked.append("") or is_usable())
    monkeypatch.setattr(guards, "IDLE_S", 60)
    page(kind, shard, "", 2)
    assert page(kind, shard, "2", 2).last_key == "4"
    assert asked == []
    monkeypatch.setattr(guards, "IDLE_S", 0)
    page(kind, shard, "4", 2)
    assert len(asked) == 1


def test_what_was_not_read_of_a_page_is_never_taken_for_the_next(
    mariadb_orders: OrdersDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:  # H079
    mariadb_orders.insert({"id": number} for number in range(1, 6))
    kind = OrdersKind()
    shard, _ = plan(kind)
    read_row = pymysql.connections.MySQLResult._read_row_from_packet
    failing = iter([True])

    def fail_once(result: Any, packet: Any) -> Any:
        if next(failing, False):
            raise MemoryError
        return read_row(result, packet)

    monkeypatch.setattr(pymysql.connections.MySQLResult, "_read_row_from_packet", fail_once)
    with pytest.raises(PageTooLarge):
        page(kind, shard, "", 4)
    assert page(kind, shard, "", 2).last_key == "2"


def test_the_last_page_needs_no_statement_behind_the_last_key(orders_db: OrdersDatabase) -> None:
    orders_db.insert({"id": number} for number in (1, 2))
    kind = OrdersKind()
    shard, _ = plan(kind)
    assert statements(orders_db.alias, lambda: page(kind, shard, "2")) == []


def test_every_statement_of_a_plan_is_an_aggregate(orders_db: OrdersDatabase) -> None:
    orders_db.add(1)
    kind = OrdersKind()
    plan(kind)
    texts = statements(orders_db.alias, lambda: plan(kind))
    rows = [sql for sql in texts if "orders" in sql]
    assert len(rows) == 2
    assert all("max(" in sql.lower() for sql in rows)


@pytest.fixture(params=["postgres", "mariadb"])
def server_orders(request: pytest.FixtureRequest) -> OrdersDatabase:
    database: OrdersDatabase = request.getfixturevalue(f"{request.param}_orders")
    return database


def end_sessions(database: OrdersDatabase) -> None:
    """End the product's sessions from outside, as an administrator or a restart would."""
    if database.vendor == "postgresql":
        database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = 'orders'"
        )
        return
    own = database.execute("SELECT connection_id()")[0][0]
    for (number,) in database.execute("SELECT id FROM information_schema.processlist WHERE db = 'orders'"):
        if number != own:
            database.execute(f"KILL {number}")


def test_a_connection_lost_while_idle_is_renewed(server_orders: OrdersDatabase) -> None:  # H081, H082
    server_orders.insert({"id": number} for number in range(1, 6))
    kind = OrdersKind()
    shard, _ = plan(kind)
    assert page(kind, shard, "", 2).last_key == "2"
    end_sessions(server_orders)
    time.sleep(1.1)
    assert page(kind, shard, "2", 2).last_key == "4"


def test_a_connection_lost_a_moment_ago_costs_one_attempt(server_orders: OrdersDatabase) -> None:  # H082
    server_orders.insert({"id": number} for number in range(1, 6))
    kind = OrdersKind()
    shard, _ = plan(kind)
    page(kind, shard, "", 2)
    end_sessions(server_orders)
    with pytest.raises(SourceUnavailable) as caught:
        page(kind, shard, "2", 2)
    assert caught.value.code == "database_connection"
    assert page(kind, shard, "2", 2).last_key == "4"


def test_a_server_that_drops_idle_sessions_disturbs_no_page(
    mariadb: MariaDB, mariadb_orders: OrdersDatabase
) -> None:  # H081
    mariadb.execute("SET GLOBAL wait_timeout = 1")
    try:
        mariadb_orders.insert([{"id": 1}])
        kind = OrdersKind()
        shard, _ = plan(kind)
        time.sleep(2.2)
        assert page(kind, shard).rows == 1
    finally:
        mariadb.execute("SET GLOBAL wait_timeout = 28800")


@pytest.fixture
def proxy(request: pytest.FixtureRequest, server_orders: OrdersDatabase) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(int(server_orders.settings["PORT"]))
    databases.register(server_orders.alias, {**server_orders.settings, "PORT": str(proxy.port), "CONN_MAX_AGE": None})
    yield proxy
    databases.forget(server_orders.alias)
    proxy.close()


def test_a_page_cut_in_the_middle_is_never_a_short_page(
    proxy: CuttingProxy, server_orders: OrdersDatabase
) -> None:  # H083
    server_orders.insert({"id": number} for number in range(1, 2001))
    kind = OrdersKind()
    shard, _ = plan(kind)
    proxy.cut_after(120_000)
    with pytest.raises(SourceUnavailable) as caught:
        page(kind, shard)
    assert caught.value.code == "database_connection"
    whole = page(kind, shard)
    assert (whole.rows, whole.last_key) == (2000, "2000")


def test_a_database_that_is_away_is_a_lost_connection(orders_db: OrdersDatabase) -> None:
    away = {**orders_db.settings, "PORT": "1", "NAME": orders_db.settings["NAME"]}
    if orders_db.vendor == "sqlite":
        away["NAME"] = "/nowhere/orders.sqlite3"
    databases.register(orders_db.alias, away)
    with pytest.raises(SourceUnavailable) as caught:
        OrdersKind().take_snapshot(ASKED)
    assert caught.value.code == "database_connection"


def hide(database: OrdersDatabase, condition: str) -> None:
    """Put a view in front of the table that does something for each row."""
    database.execute("ALTER TABLE orders RENAME TO orders_rows")
    database.execute(f"CREATE VIEW orders AS SELECT * FROM orders_rows WHERE {condition}")


def show(database: OrdersDatabase) -> None:
    database.execute("DROP VIEW orders")
    database.execute("ALTER TABLE orders_rows RENAME TO orders")


SLOW = {
    "postgresql": "pg_sleep(0.3) IS NOT NULL",
    "mysql": "sleep(0.3) = 0",
    "sqlite": "(WITH RECURSIVE n(i) AS (SELECT orders_rows.id UNION ALL SELECT i + 1 FROM n WHERE i < 3000000) SELECT max(i) FROM n) > 0",
}


def test_a_page_beyond_its_time_limit_is_a_time_out(orders_db: OrdersDatabase) -> None:  # H078
    orders_db.insert({"id": number} for number in range(1, 9))
    kind = OrdersKind()
    shard, snapshot = plan(kind)
    hide(orders_db, SLOW[orders_db.vendor])
    try:
        with exports_settings(statement_timeout_ms=200, plan_statement_timeout_ms=200):
            with pytest.raises(SourceUnavailable) as caught:
                page(kind, shard)
            assert caught.value.code == "database_timeout"
            assert kind.recount(shard, snapshot).drift is Drift.UNKNOWN
    finally:
        show(orders_db)
    assert page(kind, shard).rows == 8


def test_a_replica_conflict_is_told_as_one_and_the_page_is_read_again(postgres_orders: OrdersDatabase) -> None:  # H084
    postgres_orders.insert({"id": number} for number in range(1, 9))
    kind = OrdersKind()
    shard, _ = plan(kind)
    page(kind, shard, "", 2)
    postgres_orders.execute(
        "CREATE OR REPLACE FUNCTION conflict() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION"
        " 'canceling statement due to conflict with recovery' USING ERRCODE = '40001'; END $$"
    )
    hide(postgres_orders, "conflict()")
    try:
        with pytest.raises(SourceUnavailable) as caught:
            page(kind, shard, "2", 2)
    finally:
        show(postgres_orders)
    assert caught.value.code == "replica_conflict"
    assert page(kind, shard, "2", 2).last_key == "4"


def test_a_page_too_large_for_the_database_asks_for_a_smaller_one(sqlite_orders: OrdersDatabase) -> None:  # H079
    sqlite_orders.insert({"id": number, "remark": "x" * 1000} for number in range(1, 101))
    kind = OrdersKind()
    shard, _ = plan(kind)
    raw: Any = connections[sqlite_orders.alias].connection
    raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 60_000)
    with pytest.raises(PageTooLarge):
        page(kind, shard, "", 100)
    assert page(kind, shard, "", 50).rows == 50


def test_any_other_error_is_told_without_a_cell(postgres_orders: OrdersDatabase) -> None:
    postgres_orders.insert([{"id": 1, "remark": "secret"}])
    kind = OrdersKind()
    shard, _ = plan(kind)
    hide(postgres_orders, "remark::integer > 0")
    try:
        with pytest.raises(StepBroken) as caught:
            page(kind, shard)
    finally:
        show(postgres_orders)
    assert str(caught.value) == "DataError 22P02"
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None


def test_a_plan_waits_for_older_transactions(postgres: Postgres, postgres_orders: OrdersDatabase) -> None:  # H012
    postgres_orders.insert([{"id": 2}])
    with psycopg.connect(postgres.dsn("orders")) as late:
        late.execute("INSERT INTO orders SELECT 1, order_no, created_at, paid_at, status, customer_name, phone, address, sku,"
                     " quantity, unit_price, total, currency, remark FROM orders WHERE id = 2")  # fmt: skip
        timer = threading.Timer(0.4, late.commit)
        timer.start()
        with exports_settings(xmin_wait_s=10):
            shard, snapshot = plan(OrdersKind())
        timer.join()
    assert snapshot.certain
    assert page(OrdersKind(), shard).rows == 2


def test_a_wait_that_runs_out_leaves_the_drift_unknown(postgres: Postgres, postgres_orders: OrdersDatabase) -> None:
    postgres_orders.insert([{"id": 2}])
    kind = OrdersKind()
    with psycopg.connect(postgres.dsn("orders")) as late, exports_settings(xmin_wait_s=0):
        late.execute("UPDATE orders SET remark = 'open' WHERE id = 2")
        shard, snapshot = plan(kind)
        late.rollback()
    assert not snapshot.certain
    assert kind.recount(shard, snapshot).drift is Drift.UNKNOWN


def test_a_block_never_ends_inside_a_row(orders_db: OrdersDatabase) -> None:
    orders_db.insert({"id": number, "remark": None} for number in range(1, 5))
    kind = OrdersKind()
    shard, _ = plan(kind)
    data = page(kind, shard).data
    assert data.count(CELL) == 4 * 13
    assert data.count(ROW) == 3
