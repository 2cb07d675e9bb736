"""What a kind of one's own must keep, and what the models refuse without a database."""

from typing import Any

import pytest
from django.db import models

from exports.contracts import CellType, Column
from exports.errors import SettingInvalid
from exports.kinds.orders import OrdersKind
from exports.models import Order, OrdersAreReadOnly, ReadOnlyModel


class Coded(ReadOnlyModel):
    code: Any = models.CharField(primary_key=True, max_length=20)
    created_at: Any = models.DateTimeField()

    class Meta:
        managed = False
        app_label = "exports"
        db_table = "coded"


class TextKey(OrdersKind):
    name = "coded"
    model = Coded


class LooseKeys(OrdersKind):
    key_rises = False


class KeyElsewhere(OrdersKind):
    columns = OrdersKind.columns[1:]


class Scanned(ReadOnlyModel):
    id: Any = models.BigIntegerField(primary_key=True)
    created_at: Any = models.DateTimeField()
    scan: Any = models.BinaryField()

    class Meta:
        managed = False
        app_label = "exports"
        db_table = "scanned"


class BytesAsText(OrdersKind):
    model = Scanned
    columns = (*OrdersKind.columns[:1], Column("scan", "扫描", "Scan", CellType.TEXT))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (BytesAsText, "scan is binary, so its type must be BYTES"),
        (TextKey, "coded: the primary key must be a whole number"),
        (LooseKeys, "keys that do not rise with time are not supported"),
        (KeyElsewhere, "the first column must be the key, id"),
    ],
)
def test_a_kind_that_breaks_a_rule_is_refused_with_the_reason(kind: type[OrdersKind], reason: str) -> None:
    with pytest.raises(SettingInvalid, match=reason) as caught:
        kind()
    assert caught.value.name == "kinds"


def test_every_column_is_a_field_of_its_model() -> None:
    assert [column.name for column in OrdersKind.columns] == [field.name for field in Order._meta.fields]


def test_an_order_shows_its_key_only() -> None:
    assert str(Order(id=7, customer_name="secret")) == "7"
    assert "secret" not in repr(Order(id=7, customer_name="secret"))


def test_an_unsaved_order_cannot_be_saved() -> None:
    with pytest.raises(OrdersAreReadOnly, match=r"^save\(\) is refused"):
        Order(id=1).save()
