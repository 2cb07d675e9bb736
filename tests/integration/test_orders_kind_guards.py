"""A write is refused four times: by the model, by the router, by the session, and for want of a right."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connections
from django.test.utils import CaptureQueriesContext

from exports.errors import SettingInvalid
from exports.kinds import get, names
from exports.kinds.orders import OrdersKind
from exports.kinds.orders.router import ReadOnlyRouter
from exports.models import OpsUser, Order, OrdersAreReadOnly
from tests import databases
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.services import MariaDB, Postgres

WRITES: dict[str, Callable[[], Any]] = {
    "create": lambda: Order.objects.create(id=2),
    "get_or_create": lambda: Order.objects.get_or_create(id=2),
    "update_or_create": lambda: Order.objects.update_or_create(id=1),
    "bulk_create": lambda: Order.objects.bulk_create([Order(id=2)]),
    "bulk_update": lambda: Order.objects.bulk_update([Order(id=1)], ["remark"]),
    "update": lambda: Order.objects.filter(id=1).update(remark="x"),
    "delete of rows": lambda: Order.objects.filter(id=1).delete(),
    "select_for_update": lambda: Order.objects.select_for_update().get(id=1),
    "save": lambda: Order(id=2).save(),
    "delete": lambda: Order.objects.get(id=1).delete(),
    "save_base": lambda: Order(id=2).save_base(),
    "raw delete": lambda: Order.objects.filter(id=1)._raw_delete(databases.ALIAS),
    "async create": lambda: asyncio.run(Order.objects.acreate(id=2)),
}


@pytest.mark.parametrize("write", WRITES)
def test_the_model_refuses_every_write_and_changes_nothing(sqlite_orders: OrdersDatabase, write: str) -> None:
    sqlite_orders.add(1)
    before = sqlite_orders.execute("SELECT * FROM orders")
    with pytest.raises((OrdersAreReadOnly, DatabaseError)):
        WRITES[write]()
    assert sqlite_orders.execute("SELECT * FROM orders") == before


def test_the_refusal_says_what_to_use_instead() -> None:
    with pytest.raises(OrdersAreReadOnly, match=r"^update\(\) is refused: .* in the application that owns them"):
        Order.objects.update(remark="x")


def test_the_router_sends_reads_to_the_orders_database_and_no_write_anywhere() -> None:
    router = ReadOnlyRouter()
    with exports_settings(database="elsewhere"):
        assert router.db_for_read(Order) == "elsewhere"
    assert router.db_for_read(OpsUser) is None
    with pytest.raises(OrdersAreReadOnly):
        router.db_for_write(Order)


def test_the_router_refuses_migrations_in_the_orders_database_and_of_this_app() -> None:
    router = ReadOnlyRouter()
    assert router.allow_migrate("orders", "auth") is False
    assert router.allow_migrate("default", "exports") is False
    assert router.allow_migrate("default", "auth") is None


def test_the_session_refuses_a_write(orders_db: OrdersDatabase) -> None:
    orders_db.add(1)
    with connections[orders_db.alias].cursor() as cursor:
        for sql in ("INSERT INTO orders (id) VALUES (2)", "DELETE FROM orders", "UPDATE orders SET remark = 'x'"):
            with pytest.raises(DatabaseError):
                cursor.execute(sql)
    assert orders_db.execute("SELECT id, remark FROM orders") == [(1, None)]


def test_every_session_has_a_time_limit_in_force(orders_db: OrdersDatabase) -> None:
    kind = OrdersKind()
    asked = {"postgresql": "SHOW statement_timeout", "mysql": "SELECT @@max_statement_time"}.get(orders_db.vendor)
    if asked is None:
        pytest.skip("SQLite's limit is the progress handler: see the time-out test")
    with exports_settings(plan_statement_timeout_ms=1500):
        kind.write_privileges()
        day = utc("2026-09-14 00:00:00").date()
        from exports.contracts import ExportRequest, Format

        kind.take_snapshot(ExportRequest("orders", "o", "r", day, day, Format.CSV))
        with connections[orders_db.alias].cursor() as cursor:
            cursor.execute(asked)
            assert cursor.fetchone()[0] in ("1500ms", 1.5)


def test_other_databases_are_left_alone(postgres: Postgres, postgres_orders: OrdersDatabase) -> None:
    databases.register("other", postgres_orders.settings)
    try:
        with connections["other"].cursor() as cursor:
            cursor.execute("SHOW default_transaction_read_only")
            assert cursor.fetchone() == ("off",)
    finally:
        databases.forget("other")


def test_times_read_through_the_models_stay_right_in_the_business_session(orders_db: OrdersDatabase) -> None:
    orders_db.add(1, created_at=utc("2026-09-14 04:00:00.000001"))
    assert Order.objects.get(id=1).created_at == utc("2026-09-14 04:00:00.000001")


def test_rights_beyond_reading_are_named_on_postgresql(postgres: Postgres, postgres_orders: OrdersDatabase) -> None:
    assert OrdersKind().write_privileges() == ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "SUPERUSER")
    postgres_orders.execute("DROP ROLE IF EXISTS reader")
    postgres_orders.execute("CREATE ROLE reader LOGIN")
    postgres_orders.execute("GRANT SELECT ON orders TO reader")
    databases.register(postgres_orders.alias, postgres.settings("orders", user="reader"))
    assert OrdersKind().write_privileges() == ()
    postgres_orders.execute("GRANT UPDATE ON orders TO reader")
    assert OrdersKind().write_privileges() == ("UPDATE",)
    postgres_orders.execute("DROP OWNED BY reader")


def test_rights_beyond_reading_are_named_on_mariadb(mariadb: MariaDB, mariadb_orders: OrdersDatabase) -> None:
    assert "ALL PRIVILEGES" in OrdersKind().write_privileges()
    mariadb_orders.execute("CREATE OR REPLACE USER reader@'%' IDENTIFIED BY 'pw'".replace("%", "127.0.0.1"))
    mariadb_orders.execute("GRANT SELECT ON orders.* TO reader@'127.0.0.1'")
    databases.register(mariadb_orders.alias, mariadb.settings("orders", user="reader", password="pw"))
    assert OrdersKind().write_privileges() == ()
    mariadb_orders.execute("GRANT INSERT (remark), DELETE ON orders.orders TO reader@'127.0.0.1'")
    databases.forget(mariadb_orders.alias)
    assert sorted(OrdersKind().write_privileges()) == ["DELETE", "INSERT"]


def test_a_sqlite_file_that_can_be_written_is_named(sqlite_orders: OrdersDatabase) -> None:
    assert OrdersKind().write_privileges() == ("WRITABLE FILE",)
    entry = {
        **sqlite_orders.settings,
        "NAME": f"file:{sqlite_orders.settings['NAME']}?mode=ro",
        "OPTIONS": {"uri": True},
    }
    databases.register(sqlite_orders.alias, entry)
    assert OrdersKind().write_privileges() == ()


def test_a_whole_export_works_with_a_role_that_may_only_read(
    postgres: Postgres, postgres_orders: OrdersDatabase
) -> None:
    from exports.contracts import ExportRequest, Format, TimeForm

    postgres_orders.add(1)
    postgres_orders.execute("DROP ROLE IF EXISTS reader")
    postgres_orders.execute("CREATE ROLE reader LOGIN")
    postgres_orders.execute("GRANT SELECT ON orders TO reader")
    databases.register(postgres_orders.alias, postgres.settings("orders", user="reader"))
    kind, day = OrdersKind(), utc("2026-09-14 00:00:00").date()
    asked = ExportRequest("orders", "o", "r", day, day, Format.CSV)
    snapshot = kind.take_snapshot(asked)
    shard = kind.plan_shard(asked, snapshot, "2026-09-14")
    assert kind.read(shard, "", 10, TimeForm.TEXT, frozenset()).rows == 1
    postgres_orders.execute("DROP OWNED BY reader")


def test_kinds_are_found_by_name() -> None:
    assert names() == ("orders",)
    assert get("orders").name == "orders"
    assert get("orders") is get("orders")
    with pytest.raises(SettingInvalid, match="'refunds'"):
        get("refunds")


def test_a_kind_that_cannot_be_imported_is_refused_with_its_path() -> None:
    with (
        exports_settings(kinds=("nowhere.Kind",)),
        pytest.raises(SettingInvalid, match=r"nowhere\.Kind cannot be imported"),
    ):
        names()


def test_the_ops_user_is_never_queried_or_written(sqlite_orders: OrdersDatabase) -> None:
    with CaptureQueriesContext(connections[sqlite_orders.alias]) as queries:
        user = OpsUser(id="ops")
        assert (str(user.pk), user.last_login, user.is_authenticated) == ("ops", None, True)
    assert len(queries) == 0
