"""A second table with a column of every type, read by a kind of its own."""

import uuid
from decimal import Decimal
from typing import Any

from django.db import models

from exports.contracts import CellType, Column
from exports.kinds.orders import OrdersKind
from exports.models import ReadOnlyModel
from tests.databases import utc


class TypedOrder(ReadOnlyModel):
    id: Any = models.BigIntegerField(primary_key=True)
    created_at: Any = models.DateTimeField()
    paid_at: Any = models.DateTimeField(null=True)
    unit_price: Any = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    discount: Any = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    weight: Any = models.FloatField(null=True)
    is_gift: Any = models.BooleanField(null=True)
    born: Any = models.DateField(null=True)
    extra: Any = models.JSONField(null=True)
    token: Any = models.UUIDField(null=True)
    payload: Any = models.BinaryField(null=True)
    url: Any = models.TextField(null=True)
    note: Any = models.TextField(null=True)
    sku: Any = models.TextField(null=True)
    quantity: Any = models.BigIntegerField(null=True)
    status: Any = models.TextField(null=True)
    rate: Any = models.DecimalField(max_digits=12, decimal_places=4, null=True)
    fee: Any = models.DecimalField(max_digits=12, decimal_places=3, null=True)

    class Meta:
        managed = False
        app_label = "exports"
        db_table = "typed_orders"


STATUSES = {"paid": ("已付款", "Paid"), "sent": ("已发货", "Sent"), "=new": ("=新", "=New")}


class TypedKind(OrdersKind):
    name = "typed"
    model = TypedOrder
    columns = (
        Column("id", "号", "ID", CellType.IDENTIFIER),
        Column("created_at", "下单时间", "Created at", CellType.DATETIME),
        Column("paid_at", "支付时间", "Paid at", CellType.DATETIME, nullable=True),
        Column("unit_price", "单价", "Unit price", CellType.DECIMAL, scale=6, nullable=True),
        Column("discount", "折扣", "Discount", CellType.MONEY, scale=2, nullable=True),
        Column("weight", "重量", "Weight", CellType.FLOAT, nullable=True),
        Column("is_gift", "礼物", "Gift", CellType.BOOLEAN, nullable=True),
        Column("born", "生日", "Born", CellType.DATE, nullable=True),
        Column("extra", "其他", "Extra", CellType.JSON, nullable=True),
        Column("token", "令牌", "Token", CellType.UUID, nullable=True),
        Column("payload", "数据", "Payload", CellType.BYTES, nullable=True),
        Column("url", "网址", "URL", CellType.URL, nullable=True),
        Column("note", "备注", "Note", CellType.TEXT, nullable=True),
        Column("sku", "商品编码", "SKU", CellType.IDENTIFIER, nullable=True),
        Column("quantity", "数量", "Quantity", CellType.INTEGER, nullable=True),
        Column("status", "状态", "Status", CellType.ENUM, nullable=True, choices=STATUSES),
        Column("rate", "费率", "Rate", CellType.DECIMAL, scale=4, nullable=True),
        Column("fee", "费用", "Fee", CellType.DECIMAL, scale=3, nullable=True),
    )


_DDL = """CREATE TABLE typed_orders (
  id bigint PRIMARY KEY, created_at {time} NOT NULL, paid_at {time} NULL, unit_price numeric(18,6), discount numeric(12,2),
  weight {real}, is_gift {boolean}, born date, extra {json}, token {uuid}, payload {bytes}, url text,
  note text, sku text, quantity bigint, status text, rate numeric(12,4), fee numeric(12,3))"""
_TYPES = {
    "postgresql": {
        "time": "timestamptz",
        "real": "double precision",
        "boolean": "boolean",
        "json": "jsonb",
        "uuid": "uuid",
        "bytes": "bytea",
    },
    "sqlite": {
        "time": "datetime",
        "real": "real",
        "boolean": "bool",
        "json": "text",
        "uuid": "char(32)",
        "bytes": "blob",
    },
    "mysql": {
        "time": "datetime(6)",
        "real": "double",
        "boolean": "bool",
        "json": "json",
        "uuid": "uuid",
        "bytes": "longblob",
    },
}


def create(database: Any) -> None:
    """Make the empty table."""
    database.execute("DROP TABLE IF EXISTS typed_orders")
    database.execute(_DDL.format(**_TYPES[database.vendor]))


def add(database: Any, order_id: int, **cells: Any) -> None:
    """One row of 2026-09-14; columns not named are NULL."""
    full = {"id": order_id, "created_at": utc("2026-09-14 04:00:00"), **cells}
    marks = ", ".join(["%s"] * len(full))
    plain = [_plain(value, database.vendor) for value in full.values()]
    database.execute(f"INSERT INTO typed_orders ({', '.join(full)}) VALUES ({marks})", plain)


def _plain(value: Any, vendor: str) -> Any:
    """As the drivers take it; SQLite stores a UUID as Django does."""
    if isinstance(value, uuid.UUID):
        return value.hex if vendor == "sqlite" else str(value)
    return str(value) if isinstance(value, Decimal) else value
