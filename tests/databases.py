"""An orders table in a real database: written by the test as superuser, read by the product through its alias."""

import datetime as dt
from collections.abc import Iterable
from typing import Any

from django.db import connections

from exports.kinds.orders import sample

ALIAS = "orders"
DEFAULTS: dict[str, Any] = {
    "order_no": "2026091400012345678",
    "created_at": dt.datetime(2026, 9, 14, 4, 0, tzinfo=dt.UTC),
    "paid_at": None,
    "status": "paid",
    "customer_name": "张三丰",
    "phone": "+8613900000000",
    "address": "路1号",
    "sku": "000123",
    "quantity": 1,
    "unit_price": "10.10",
    "total": "10.10",
    "currency": "CNY",
    "remark": None,
}


def utc(text: str) -> dt.datetime:
    """`2026-09-14 12:00:00[.ffffff]`, read as UTC."""
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


class OrdersDatabase:
    """`settings` is the entry of `DATABASES` that a process of its own can use. `connection`: DB-API, may write."""

    def __init__(self, connection: Any, *, vendor: str, settings: dict[str, Any]) -> None:
        self.alias = ALIAS
        self.vendor = vendor
        self.settings = settings
        self.connection = connection
        for sql in sample.statements(vendor):
            self.execute(sql)

    def execute(self, sql: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement as superuser; marks are `%s`."""
        cursor = self.connection.cursor()
        text = sql.replace("%s", "?") if self.vendor == "sqlite" else sql
        cursor.execute(text, tuple(map(self._plain, parameters)))
        return list(cursor.fetchall()) if cursor.description else []

    def add(self, order_id: int, **cells: Any) -> None:
        """One order; cells not named have the defaults."""
        self.insert([{"id": order_id, **cells}])

    def insert(self, rows: Iterable[dict[str, Any]]) -> None:
        full = [{**DEFAULTS, **row} for row in rows]
        names = ["id", *DEFAULTS]
        self.insert_rows([tuple(row[name] for name in names) for row in full])

    def insert_rows(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Rows as `sample.generate` makes them."""
        cursor = self.connection.cursor()
        if self.vendor == "sqlite":
            cursor.execute("BEGIN")
        sample.insert(cursor, (tuple(row) for row in rows), vendor=self.vendor)
        if self.vendor == "sqlite":
            cursor.execute("COMMIT")

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dt.datetime) and self.vendor != "postgresql":
            return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
        return value


def register(alias: str, entry: dict[str, Any]) -> None:
    """Make an alias known to Django at run time; an open connection of the same name is closed."""
    forget(alias)
    connections.databases.update(connections.configure_settings({**connections.databases, alias: dict(entry)}))


def forget(alias: str) -> None:
    """Close the alias's connection; the next use opens a new one."""
    if alias in connections.databases:
        connections[alias].close()
        del connections[alias]
