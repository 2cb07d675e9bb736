"""Tables whose keys do not rise with time: UUIDs, codes and numbers at random; each with a kind of its own."""

import datetime as dt
import random
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from django.db import models

from exports.contracts import CellType, Column
from exports.kinds.orders import OrdersKind
from exports.models import ReadOnlyModel
from tests.databases import OrdersDatabase
from tests.kinds import FlakyOrders

_REST = (
    Column("created_at", "下单时间", "Created at", CellType.DATETIME),
    Column("note", "备注", "Note", CellType.TEXT, nullable=True),
)


class TimedRow(ReadOnlyModel):
    """A row but for its key, which says nothing of its time."""

    created_at: Any = models.DateTimeField()
    note: Any = models.TextField(null=True)

    class Meta:
        abstract = True
        managed = False
        app_label = "exports"


class TimedKind(OrdersKind):
    key_rises = False


class UuidOrder(TimedRow):
    id: Any = models.UUIDField(primary_key=True)

    class Meta(TimedRow.Meta):
        db_table = "uuid_orders"


class UuidKind(TimedKind):
    name = "uuid"
    model = UuidOrder
    columns = (Column("id", "号", "ID", CellType.UUID), *_REST)


class FlakyUuid(UuidKind, FlakyOrders):
    """Calls first what the test has put into `FlakyOrders`."""


class CodedOrder(TimedRow):
    code: Any = models.CharField(primary_key=True, max_length=40)

    class Meta(TimedRow.Meta):
        db_table = "coded_orders"


class CodedKind(TimedKind):
    name = "coded"
    model = CodedOrder
    columns = (Column("code", "编码", "Code", CellType.IDENTIFIER), *_REST)


class NumberedOrder(TimedRow):
    id: Any = models.BigIntegerField(primary_key=True)

    class Meta(TimedRow.Meta):
        db_table = "numbered_orders"


class NumberedKind(TimedKind):
    name = "numbered"
    model = NumberedOrder
    columns = (Column("id", "号", "ID", CellType.INTEGER), *_REST)


KINDS: tuple[type[OrdersKind], ...] = (UuidKind, CodedKind, NumberedKind)
ODD_CODES = ("a'b\"c", "50%s", "a @ b", "x|y", "back\\slash", "two\nlines", "😀路", "%(a)s", " blank", "z" * 40)
"""Keys that a cursor, a statement or a record could trip over."""

_KEYS = {
    "uuid": {"postgresql": "uuid", "sqlite": "char(32)", "mysql": "uuid"},
    # On SQLite and MariaDB in no order of bytes: capitals stand among small letters.
    "coded": {
        "postgresql": "varchar(40)",
        "sqlite": "varchar(40) COLLATE NOCASE",
        "mysql": "varchar(40) COLLATE utf8mb4_general_ci",
    },
    "numbered": {"postgresql": "bigint", "sqlite": "bigint", "mysql": "bigint"},
}
_TIMES = {"postgresql": "timestamptz", "sqlite": "datetime", "mysql": "datetime(6)"}


def create(database: OrdersDatabase, kind: type[OrdersKind], *, indexed: bool = True) -> None:
    """Make the empty table."""
    table, key = names(kind)
    vendor = database.vendor
    database.execute(f"DROP TABLE IF EXISTS {table}")
    database.execute(
        f"CREATE TABLE {table} ({key} {_KEYS[kind.name][vendor]} PRIMARY KEY,"
        f" created_at {_TIMES[vendor]} NOT NULL, note text)"
    )
    if indexed:
        database.execute(f"CREATE INDEX {table}_time ON {table} (created_at, {key})")


def names(kind: type[OrdersKind]) -> tuple[str, str]:
    """Of the table and its key."""
    return kind.model._meta.db_table, kind.model._meta.pk.name


def new_keys(kind: type[OrdersKind], count: int, *, seed: int = 1) -> list[Any]:
    """Keys of no order in time."""
    chosen = random.Random(seed)
    make: dict[str, Callable[[], Any]] = {
        "uuid": lambda: uuid.UUID(int=chosen.getrandbits(128), version=4),
        "coded": lambda: f"{chosen.choice('aBcDeF')}-{chosen.randrange(36**8):x}",
        "numbered": lambda: chosen.randrange(-(10**15), 10**15),
    }
    return [make[kind.name]() for _ in range(count)]


def insert(database: OrdersDatabase, kind: type[OrdersKind], rows: Iterable[tuple[Any, dt.datetime]]) -> None:
    """Keys with their times."""
    table, key = names(kind)
    for value, created_at in rows:
        stored = stored_key(database, value)
        database.execute(f"INSERT INTO {table} ({key}, created_at, note) VALUES (%s, %s, 'n')", (stored, created_at))


_MANY = {
    "postgresql": "SELECT gen_random_uuid(), timestamptz '2026-09-14 04:00:00Z' + at * interval '1 second', 'n'"
    " FROM generate_series(1, %s) AS at",
    "sqlite": "WITH RECURSIVE numbers(at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM numbers WHERE at < %s)"
    " SELECT lower(hex(randomblob(16))), datetime('2026-09-14 04:00:00', at || ' seconds'), 'n' FROM numbers",
    "mysql": "SELECT uuid(), timestamp '2026-09-14 04:00:00' + INTERVAL seq SECOND, 'n' FROM seq_1_to_100000 WHERE seq <= %s",
}


def insert_many(database: OrdersDatabase, count: int) -> None:
    """UUIDs, one a second from noon on, and let the planner know them."""
    database.execute(f"INSERT INTO uuid_orders {_MANY[database.vendor]}", (count,))
    database.execute("ANALYZE TABLE uuid_orders" if database.vendor == "mysql" else "ANALYZE uuid_orders")


def stored_key(database: OrdersDatabase, value: Any) -> Any:
    """As the table holds it; SQLite has UUIDs as Django stores them."""
    if isinstance(value, uuid.UUID):
        return value.hex if database.vendor == "sqlite" else str(value)
    return value


def keys_in_order(database: OrdersDatabase, kind: type[OrdersKind]) -> list[str]:
    """All keys as the file shows them, in the order of time and key, by the database's own comparison."""
    table, key = names(kind)
    found = database.execute(f"SELECT {key} FROM {table} ORDER BY created_at, {key}")
    return [str(uuid.UUID(str(value))) if kind.name == "uuid" else str(value) for (value,) in found]
