"""`export_doctor`: one line for each thing that the service needs."""

import io
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from django.test import override_settings

from exports import storage
from exports.pipeline import diagnosis
from exports.pipeline.diagnosis import Finding, Level
from exports.pipeline.remedies import REMEDIES
from exports.state.replies import WorkerSign
from exports.state.store import store
from tests import keyed_orders
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.reliability.test_processes_worker import clock_library
from tests.services import S3, Valkey

ROOT = Path(__file__).resolve().parents[2]


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


@contextmanager
def redis_set_to(client: redis.Redis, name: str, value: str) -> Iterator[None]:
    before = client.config_get(name)[name]
    client.config_set(name, value)
    try:
        yield
    finally:
        client.config_set(name, before)


def test_an_evicting_redis_fails(desk: Path, redis_db: redis.Redis) -> None:
    with redis_set_to(redis_db, "maxmemory-policy", "allkeys-lru"):
        found = doctor(code=1)
    assert found["redis"] == ("FAIL", "maxmemory-policy is allkeys-lru, it must be noeviction")


def test_a_redis_without_an_append_only_file_fails(desk: Path, redis_db: redis.Redis) -> None:
    with redis_set_to(redis_db, "appendonly", "no"):
        found = doctor(code=1)
    assert found["redis"] == ("FAIL", "appendonly is off, it must be on")


@pytest.mark.parametrize("name", ["broker", "cache"])
def test_a_database_of_redis_that_is_shared_under_another_name_fails(desk: Path, valkey: Valkey, name: str) -> None:
    same = valkey.url(1).replace("127.0.0.1", "localhost")
    caches = {"default": {**settings.CACHES["default"], "LOCATION": same}}
    with override_settings(**{"CACHES": caches} if name == "cache" else {"EXPORTS_BROKER_URL": same}):
        found = doctor(code=1)
    told = f"the state shares its database with {name}: what empties one of them loses all tasks"
    assert found["redis databases"] == ("FAIL", told)


def test_a_redis_that_is_away_is_not_taken_for_a_shared_one(
    desk: Path, valkey: Valkey, sqlite_orders: OrdersDatabase
) -> None:
    caches = {"default": {**settings.CACHES["default"], "LOCATION": valkey.url(2)}}
    with override_settings(EXPORTS_BROKER_URL="redis://127.0.0.1:1/0", CACHES=caches):
        assert doctor()["redis databases"] == ("OK", "state and cache are apart")
    with exports_settings(redis_url="redis://127.0.0.1:1/1"):
        assert "redis databases" not in doctor(code=1)


def test_debug_and_an_open_door_fail(desk: Path, sqlite_orders: OrdersDatabase) -> None:
    with override_settings(DEBUG=True), exports_settings(auth="none"):
        found = doctor(code=1)
    assert found["debug"][0] == "FAIL" and "DEBUG is on" in found["debug"][1]
    assert found["access"] == ("FAIL", "auth is `none`: whoever reaches the service may export everything")
    with override_settings(EXPORTS_LOOPBACK_DEMO=True), exports_settings(auth="none"):
        assert doctor()["access"][0] == "WARN"


def test_workers_with_another_spool_are_told(desk: Path, sqlite_orders: OrdersDatabase) -> None:
    assert "spool shared" not in doctor()
    store().beat("near:1", WorkerSign("lanes", False, storage.spool().id, 90))
    assert doctor()["spool shared"] == ("OK", "all workers that are alive have this one")
    store().beat("far:1", WorkerSign("lanes", False, "another", 90))
    told = "workers on far have another spool: they help only with the tasks planned on it"
    assert doctor()["spool shared"] == ("WARN", told)


def test_a_wrong_bucket_fails_and_one_of_another_installation_is_told(
    desk: Path, s3: S3, sqlite_orders: OrdersDatabase
) -> None:
    with exports_settings(**s3.settings(prefix="doctor") | {"s3_bucket": "no-such-bucket"}):
        level, text = doctor(code=1)["store"]
    assert level == "FAIL" and "NoSuchBucket" in text
    s3.client().put_object(Bucket=s3.settings(prefix="")["s3_bucket"], Key="doctor/identity", Body=b"somebody else's")
    with exports_settings(**s3.settings(prefix="doctor")):
        found = doctor()
    assert found["identity"][0] == "WARN" and "the store belongs to" in found["identity"][1]


def test_clocks_that_differ_are_warnings(desk: Path, valkey: Valkey, sqlite_orders: OrdersDatabase) -> None:
    found = findings_of(
        desk,
        valkey,
        DATABASE_URL=f"sqlite:///{sqlite_orders.settings['NAME']}",
        LD_PRELOAD=clock_library(),
        FAKETIME="-2m",
    )
    assert found["clock"]["level"] == "WARN"
    assert re.fullmatch(r"the clock of Redis is 1[12]\d s ahead of this host's", found["clock"]["text"])
    assert "NTP" in found["clock"]["remedy"]


def findings_of(desk: Path, valkey: Valkey, **variables: str) -> dict[str, Any]:
    """Name → finding, of the command as an operator runs it."""
    environment = {
        "PATH": "",
        "EXPORTS_REDIS_URL": valkey.url(1),
        "EXPORTS_SPOOL_DIR": str(desk / "spool"),
        **variables,
    }
    ran = subprocess.run(
        [sys.executable, "manage.py", "export_doctor", "--json"],
        cwd=ROOT, env=environment | {"EXPORTS_STORE_DIR": str(desk / "files")}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {one["name"]: one for one in json.loads(ran.stdout)["findings"]}


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"EXPORTS_BUSINESS_ZONE": "Asia/Peking"}, "FAIL EXPORTS_BUSINESS_ZONE: is not an IANA time zone"),
        (
            {"EXPORTS_REDIS_URL": "redis://h/3", "EXPORTS_BROKER_URL": "redis://h/3"},
            "FAIL EXPORTS_BROKER_URL: state, broker",
        ),
        ({"EXPORTS_PAGE_ROW": "7"}, "FAIL EXPORTS_PAGE_ROW: "),
    ],
    ids=["zone", "databases", "name"],
)
def test_a_setting_that_lets_nothing_start_is_named_without_a_traceback(variables: dict[str, str], told: str) -> None:
    ran = subprocess.run(
        [sys.executable, "manage.py", "export_doctor"],
        cwd=ROOT, env={"PATH": "", **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(told) and "docs/settings.md" in ran.stderr and "Traceback" not in ran.stderr


def test_every_finding_has_a_remedy_and_prints_it_only_where_something_is_wrong(
    desk: Path, sqlite_orders: OrdersDatabase
) -> None:
    out = io.StringIO()
    call_command("export_doctor", stdout=out)
    lines = out.getvalue().splitlines()
    for at, line in enumerate(lines):
        wrong = line.startswith(("WARN", "FAIL"))
        assert (lines[at + 1 : at + 2] != [] and lines[at + 1].strip().startswith("→")) == wrong, line
    assert set(diagnosis._LOOKS) - {"orders table", "orders grants"} <= set(REMEDIES)
    assert all(Finding(Level.FAIL, name, "").remedy for name in diagnosis._LOOKS)


def test_a_redis_that_is_away_fails_and_the_rest_is_still_looked_at(desk: Path, sqlite_orders: OrdersDatabase) -> None:
    with exports_settings(redis_url="redis://127.0.0.1:1/1"):
        found = doctor(code=1)
    assert [name for name, (level, _) in found.items() if level == "FAIL"] == ["redis"]
    assert found["redis"] == ("FAIL", "state_unavailable: ConnectionError (ConnectionError)")
    unchecked = {name for name, (_, text) in found.items() if text == "not checked: state_unavailable, as above"}
    assert unchecked == {"clock", "broker", "workers", "spool shared", "identity"}
    assert found["orders key"][0] == "OK"


def remedies() -> dict[str, str]:
    """Name → what is printed below it."""
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("export_doctor", "--json", stdout=out)
    return {one["name"]: one["remedy"] for one in json.loads(out.getvalue())["findings"]}


def test_a_locked_table_has_the_remedy_of_its_error(desk: Path, sqlite_orders: OrdersDatabase) -> None:
    held = sqlite3.connect(sqlite_orders.settings["NAME"], isolation_level=None)
    held.execute("BEGIN EXCLUSIVE")
    try:
        with exports_settings(statement_timeout_ms=100, plan_statement_timeout_ms=100):
            found, told = doctor(code=1), remedies()
    finally:
        held.close()
    assert found["orders table"] == ("FAIL", "database_timeout")
    assert told["orders table"] == REMEDIES["database_timeout"]


def test_a_database_that_is_away_fails_once(desk: Path, postgres_orders: OrdersDatabase) -> None:
    settings = connections["orders"].settings_dict
    connections["orders"].close()
    kept = settings["PORT"]
    settings["PORT"] = "1"
    try:
        found, told = doctor(code=1), remedies()
    finally:
        settings["PORT"] = kept
    assert found["orders table"] == ("FAIL", "database_connection")
    assert told["orders table"] == REMEDIES["database_connection"]
    assert found["orders grants"] == ("WARN", "not checked: database_connection, as above")


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
    level, text = found[name.removesuffix("_dir")]
    assert level == "FAIL" and str(tmp_path / "file") in text
