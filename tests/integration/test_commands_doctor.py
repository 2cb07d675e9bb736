"""`export_doctor`: one line for each thing that the service needs."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.management import call_command
from django.db import connections

from tests import keyed_orders
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc


def doctor(*, code: int = 0) -> dict[str, Any]:
    """Name → (level, text)."""
    out = io.StringIO()
    try:
        call_command("export_doctor", "--json", stdout=out)
        left: object = 0
    except SystemExit as error:
        left = error.code
    found = {one["name"]: (one["level"], one["text"]) for one in json.loads(out.getvalue())["findings"]}
    assert left == code, found
    return found


def test_a_sound_installation_has_no_fail(desk: Path, orders_db: OrdersDatabase) -> None:
    orders_db.add(1, created_at=utc("2026-09-14 04:00:00"))
    found = doctor()
    assert found["redis"] == ("OK", "answers; noeviction, append-only file, no cluster")
    assert found["broker"] == ("OK", "answers; 0 hints wait")
    assert found["workers"] == ("WARN", "none gave a sign of life in the last 15 s: tasks stay queued")
    assert (found["spool"], found["store"]) == (("OK", "writable"), ("OK", "writable"))
    assert found["orders key"] == ("OK", "orders.id is unique")
    assert found["orders time index"] == ("OK", "orders.created_at has an index")
    assert found["orders page query"][0] == "OK"
    assert sorted(path.name for path in (desk / "files").iterdir()) == ["identity"]


def test_a_page_of_a_large_table_is_read_by_the_key(desk: Path, sqlite_orders: OrdersDatabase) -> None:
    sqlite_orders.add(1, created_at=utc("2026-09-14 04:00:00"))
    sqlite_orders.add(20_000, created_at=utc("2026-09-14 05:00:00"))
    assert doctor()["orders page query"] == ("OK", "a page is read by INDEX sqlite_autoindex_orders_1")


def test_keys_that_do_not_rise_want_an_index_of_time_and_key(desk: Path, orders_db: OrdersDatabase) -> None:
    keyed_orders.create(orders_db, keyed_orders.UuidKind, indexed=False)
    keyed_orders.insert_many(orders_db, 9_000)
    with exports_settings(kinds=("tests.keyed_orders.UuidKind",)):
        whole = "a page reads the whole of uuid_orders"
        assert doctor()["uuid page query"] == ("OK", f"{whole}; the table is small")
        keyed_orders.insert_many(orders_db, 3_000)
        remedy = ": create an index on uuid_orders (created_at, id)"
        assert doctor()["uuid page query"] == ("WARN", whole + remedy)
        orders_db.execute("CREATE INDEX by_time_and_key ON uuid_orders (created_at, id)")
        keyed_orders.insert_many(orders_db, 1)
        # SQLite answers an EXPLAIN that it has prepared before from before the index.
        connections[orders_db.alias].close()
        found = doctor()
    assert found["uuid page query"][0] == "OK", found["uuid page query"]
    assert found["uuid page query"][1].endswith("by_time_and_key")
    assert found["uuid time index"] == ("OK", "uuid_orders.created_at has an index")


def test_an_index_of_the_time_alone_may_leave_a_page_to_sort(desk: Path, mariadb_orders: OrdersDatabase) -> None:
    """InnoDB's would do: it ends with the key."""
    keyed_orders.create(mariadb_orders, keyed_orders.UuidKind, indexed=False)
    mariadb_orders.execute("ALTER TABLE uuid_orders ENGINE = Aria, ADD INDEX by_time (created_at)")
    keyed_orders.insert_many(mariadb_orders, 12_000)
    mariadb_orders.execute("UPDATE uuid_orders SET created_at = created_at - INTERVAL 30 DAY")
    keyed_orders.insert_many(mariadb_orders, 100)
    with exports_settings(kinds=("tests.keyed_orders.UuidKind",)):
        assert doctor()["uuid page query"] == (
            "WARN",
            "a page sorts its day, read by by_time: create an index on uuid_orders (created_at, id)",
        )


def test_an_evicting_redis_fails(desk: Path, redis_db: redis.Redis) -> None:
    redis_db.config_set("maxmemory-policy", "allkeys-lru")
    try:
        found = doctor(code=1)
    finally:
        redis_db.config_set("maxmemory-policy", "noeviction")
    assert found["redis"] == ("FAIL", "maxmemory-policy is allkeys-lru, it must be noeviction")


def test_a_redis_that_is_away_fails_and_the_rest_is_still_looked_at(desk: Path, sqlite_orders: OrdersDatabase) -> None:
    with exports_settings(redis_url="redis://127.0.0.1:1/1"):
        found = doctor(code=1)
    assert found["redis"][0] == "FAIL"
    assert found["orders key"][0] == "OK"


def test_a_key_that_is_not_unique_fails(desk: Path, sqlite_orders: OrdersDatabase) -> None:
    sqlite_orders.add(1, created_at=utc("2026-09-14 04:00:00"))
    sqlite_orders.execute("ALTER TABLE orders RENAME TO others")
    sqlite_orders.execute("CREATE TABLE orders AS SELECT * FROM others")
    found = doctor(code=1)
    assert found["orders key"] == ("FAIL", "orders.id has no unique index: rows could be lost between two pages")
    assert found["orders time index"][0] == "WARN"


def test_a_role_that_may_write_is_a_warning(desk: Path, postgres_orders: OrdersDatabase) -> None:
    level, text = doctor()["orders grants"]
    assert level == "WARN"
    assert text == "the role may do more than read: INSERT, UPDATE, DELETE, TRUNCATE, SUPERUSER"


def test_a_missing_table_fails(desk: Path, sqlite_orders: OrdersDatabase) -> None:
    sqlite_orders.execute("DROP TABLE orders")
    assert doctor(code=1)["orders table"] == ("FAIL", "there is no table orders to be seen")


@pytest.mark.parametrize("name", ["spool_dir", "store_dir"])
def test_a_place_that_cannot_be_written_fails(desk: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with exports_settings(**{name: tmp_path / "file" / "below"}):
        found = doctor(code=1)
    assert found[name.removesuffix("_dir")][0] == "FAIL"
