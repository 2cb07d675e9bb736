"""What a kind of one's own must keep, and what the models refuse without a database."""

from dataclasses import replace
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


CODE = Column("code", "编码", "Code", CellType.IDENTIFIER)


class TextKey(OrdersKind):
    name = "coded"
    model = Coded
    columns = (CODE,)


class LooseTextKey(TextKey):
    key_rises = False


class TextKeyAsUuid(LooseTextKey):
    columns = (replace(CODE, type=CellType.UUID),)


class LooseKeys(OrdersKind):
    key_rises = False


class Priced(ReadOnlyModel):
    price: Any = models.DecimalField(primary_key=True, max_digits=9, decimal_places=2)
    created_at: Any = models.DateTimeField()

    class Meta:
        managed = False
        app_label = "exports"
        db_table = "priced"


class PriceKey(LooseTextKey):
    model = Priced


class KeyElsewhere(OrdersKind):
    columns = OrdersKind.columns[1:]


class Odd(ReadOnlyModel):
    id: Any = models.BigIntegerField(primary_key=True)
    created_at: Any = models.DateTimeField()
    scan: Any = models.BinaryField()
    weight: Any = models.CharField(max_length=20)

    class Meta:
        managed = False
        app_label = "exports"
        db_table = "odd"


def of_type(name: str, kind: CellType) -> type[OrdersKind]:
    """A kind that declares one column of the odd table so."""
    columns = (*OrdersKind.columns[:1], Column(name, "列", "Column", kind))
    return type("OddKind", (OrdersKind,), {"name": "odd", "model": Odd, "columns": columns})


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (of_type("scan", CellType.TEXT), "odd: scan is a BinaryField, no TEXT"),
        (of_type("weight", CellType.INTEGER), "odd: weight is a CharField, no INTEGER"),
        (of_type("weight", CellType.MONEY), "odd: weight is a CharField, no MONEY"),
        (of_type("weight", CellType.DATETIME), "odd: weight is a CharField, no DATETIME"),
        (of_type("created_at", CellType.DATE), "odd: created_at is a DateTimeField, no DATE"),
        (of_type("id", CellType.BOOLEAN), "odd: id is a BigIntegerField, no BOOLEAN"),
        (of_type("height", CellType.TEXT), "odd: the model has no field height"),
        (TextKey, "coded: only whole numbers rise with time: set key_rises = False"),
        (PriceKey, "coded: the primary key must be a whole number, a UUID or text"),
        (TextKeyAsUuid, "coded: the key code must be shown as IDENTIFIER or TEXT"),
        (KeyElsewhere, "the first column must be the key, id"),
    ],
)
def test_a_kind_that_breaks_a_rule_is_refused_with_the_reason(kind: type[OrdersKind], reason: str) -> None:
    with pytest.raises(SettingInvalid, match=reason) as caught:
        kind()
    assert caught.value.name == "kinds"


@pytest.mark.parametrize("kind", [LooseTextKey, LooseKeys])
def test_keys_that_do_not_rise_may_be_text_or_numbers(kind: type[OrdersKind]) -> None:
    assert kind().key_rises is False


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("scan", CellType.BYTES),
        ("weight", CellType.TEXT),
        ("weight", CellType.JSON),
        ("id", CellType.MONEY),
        ("id", CellType.IDENTIFIER),
        ("created_at", CellType.DATETIME),
        ("created_at", CellType.TEXT),
    ],
)
def test_a_column_whose_type_fits_its_field_is_taken(name: str, kind: CellType) -> None:
    assert of_type(name, kind)().name == "odd"


def test_every_column_is_a_field_of_its_model() -> None:
    assert [column.name for column in OrdersKind.columns] == [field.name for field in Order._meta.fields]


def test_an_order_shows_its_key_only() -> None:
    assert str(Order(id=7, customer_name="secret")) == "7"
    assert "secret" not in repr(Order(id=7, customer_name="secret"))


def test_an_unsaved_order_cannot_be_saved() -> None:
    with pytest.raises(OrdersAreReadOnly, match=r"^save\(\) is refused"):
        Order(id=1).save()
