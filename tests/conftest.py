"""Fixtures that all tests share: real servers, one of each in a session, and an orders table in each database."""

import math
import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import dramatiq
import psycopg
import pymysql
import pytest
import redis
from django.conf import settings
from django.test import override_settings

from config.broker import make_broker
from exports.pipeline import middleware
from tests import databases, kinds, services, six_days
from tests.s3_proxy import S3Proxy

S = TypeVar("S", bound=services.Service)
VENDORS = ("sqlite", "postgres", "mariadb")
MEMORY = Path("/dev/shm")
ROOM_BYTES = 3 * 2**30
"""Free memory from which servers and tests keep their files there: on a disk, they wait for it half of their time."""
EVERY = 60
"""Of the points of a sweep, how many are taken when nobody asks for more."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("reliability")
    group.addoption("--reliability-seed", type=int, default=random.randrange(2**32), help="which points are sampled")
    group.addoption("--reliability-every", type=int, default=EVERY, help="every N-th point; 1 sweeps them all")
    group.addoption("--reliability-until", type=float, default=math.inf, help="Unix time at which a sweep ends")


def pytest_configure() -> None:
    if "TMPDIR" not in os.environ:
        tempfile.tempdir = memory()


def memory() -> str | None:
    """The folder that lies in memory, if there is room."""
    return str(MEMORY) if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM_BYTES else None


@contextmanager
def running(start: Callable[[Path], S]) -> Iterator[S]:
    """A server in a folder of its own, outside pytest's, which only its owner may enter."""
    with tempfile.TemporaryDirectory(prefix="exports-", ignore_cleanup_errors=True) as folder:
        service = start(Path(folder))
        yield service
        service.stop()


@pytest.fixture(scope="session", autouse=True)
def _database_access(django_db_blocker: Any) -> Iterator[None]:
    """The orders database is read without transactions of the test runner, so nothing is made or rolled back."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="session")
def valkey() -> Iterator[services.Valkey]:
    with running(services.start_valkey) as service:
        yield service


@pytest.fixture(scope="session")
def postgres() -> Iterator[services.Postgres]:
    with running(services.start_postgres) as service:
        service.execute("CREATE DATABASE orders")
        yield service


@pytest.fixture(scope="session")
def mariadb() -> Iterator[services.MariaDB]:
    with running(services.start_mariadb) as service:
        service.execute("CREATE DATABASE orders")
        yield service


@pytest.fixture(scope="session")
def s3() -> Iterator[services.S3]:
    with running(services.start_s3) as service:
        yield service


@pytest.fixture
def proxy(s3: services.S3) -> Iterator[S3Proxy]:
    """Before the S3 server; no call has passed it."""
    with closing(S3Proxy(s3.port)) as found:
        yield found


@pytest.fixture
def redis_db(valkey: services.Valkey) -> Iterator[redis.Redis]:
    """A client of database 1, flushed; `settings.EXPORTS["redis_url"]` names the same database."""
    with redis.Redis.from_url(valkey.url(1)) as client:
        client.flushall()
        with exports_settings(redis_url=valkey.url(1)):
            yield client


@pytest.fixture(scope="session")
def orders_url(postgres: services.Postgres) -> str:
    """URL of the orders of `six_days`."""
    return six_days.make(postgres)


@pytest.fixture(params=VENDORS)
def orders_db(request: pytest.FixtureRequest) -> databases.OrdersDatabase:
    """An empty orders table, read by the product through the alias `orders`. Runs once for each database."""
    database: databases.OrdersDatabase = request.getfixturevalue(f"{request.param}_orders")
    return database


@pytest.fixture
def sqlite_orders(tmp_path: Path) -> Iterator[databases.OrdersDatabase]:
    path = tmp_path / "orders.sqlite3"
    entry = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(path)}
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as connection:
        yield from _offered(databases.OrdersDatabase(connection, vendor="sqlite", settings=entry))


@pytest.fixture
def postgres_orders(postgres: services.Postgres) -> Iterator[databases.OrdersDatabase]:
    with psycopg.connect(postgres.dsn("orders"), autocommit=True) as connection:
        yield from _offered(
            databases.OrdersDatabase(connection, vendor="postgresql", settings=postgres.settings("orders"))
        )


@pytest.fixture
def mariadb_orders(mariadb: services.MariaDB) -> Iterator[databases.OrdersDatabase]:
    # No strict mode for the writer, so that a test can store zero dates.
    with pymysql.connect(
        host=mariadb.host,
        port=mariadb.port,
        user="root",
        database="orders",
        charset="utf8mb4",
        autocommit=True,
        sql_mode="",
    ) as connection:
        yield from _offered(databases.OrdersDatabase(connection, vendor="mysql", settings=mariadb.settings("orders")))


def _offered(database: databases.OrdersDatabase) -> Iterator[databases.OrdersDatabase]:
    databases.register(database.alias, {**database.settings, "CONN_MAX_AGE": None})
    with exports_settings(database=database.alias):
        yield database
    databases.forget(database.alias)


@contextmanager
def exports_settings(**changes: Any) -> Iterator[None]:
    """Settings of the package changed for a while; the others stay."""
    with override_settings(EXPORTS={**settings.EXPORTS, **changes}):
        yield


@pytest.fixture
def desk(redis_db: redis.Redis, valkey: services.Valkey, tmp_path: Path) -> Iterator[Path]:
    """Everything that the stages need to run in this process; the answer holds `spool` and `files`."""
    broker = make_broker(valkey.url(2), middleware=middleware.for_sending())
    dramatiq.set_broker(broker)
    flaky = kinds.FlakyOrders
    for faults in (flaky.before_read, flaky.before_plan, flaky.before_recount, flaky.reads):
        faults.clear()
    with exports_settings(
        kinds=("tests.kinds.FlakyOrders", "tests.kinds.WordsKind", "tests.kinds.BulkKind"),
        spool_dir=tmp_path / "spool",
        store_dir=tmp_path / "files",
        spool_reserve_mb=0,
    ):
        yield tmp_path
    broker.close()
