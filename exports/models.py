"""The unmanaged models: orders, which are only read, and the ops user, which is never stored.

Another team exports its own table with its own unmanaged model: subclass `ReadOnlyModel`, name the
table in `Meta.db_table`, and name model and columns in a subclass of `OrdersKind`.
"""

from typing import Any, Never, TypeAlias

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import models

_Field: TypeAlias = "models.Field[Any, Any]"


class OrdersAreReadOnly(TypeError):
    """A write to an exported table. The text says what to use instead."""

    def __init__(self, attempt: str) -> None:
        super().__init__(
            f"{attempt}() is refused: this model only reads the orders database; "
            "change rows in the application that owns them, through its own models"
        )


class ReadOnlyQuerySet(models.QuerySet[Any]):
    """Reads only. Every method that writes raises `OrdersAreReadOnly`, the async twins included: they call these."""

    def create(self, **_: Any) -> Never:
        raise OrdersAreReadOnly("create")

    def get_or_create(self, *_: Any, **__: Any) -> Never:
        raise OrdersAreReadOnly("get_or_create")

    def update_or_create(self, *_: Any, **__: Any) -> Never:
        raise OrdersAreReadOnly("update_or_create")

    def bulk_create(self, *_: Any, **__: Any) -> Never:
        raise OrdersAreReadOnly("bulk_create")

    def bulk_update(self, *_: Any, **__: Any) -> Never:
        raise OrdersAreReadOnly("bulk_update")

    def update(self, **_: Any) -> Never:
        raise OrdersAreReadOnly("update")

    def delete(self) -> Never:
        raise OrdersAreReadOnly("delete")

    def select_for_update(self, *_: Any, **__: Any) -> Never:
        raise OrdersAreReadOnly("select_for_update")


class ReadOnlyModel(models.Model):
    """Base of a model whose table belongs to another application."""

    objects = ReadOnlyQuerySet.as_manager()

    class Meta:
        abstract = True
        managed = False
        base_manager_name = "objects"

    def save(self, *_: Any, **__: Any) -> Never:
        raise OrdersAreReadOnly("save")

    def save_base(self, *_: Any, **__: Any) -> Never:
        raise OrdersAreReadOnly("save_base")

    def delete(self, *_: Any, **__: Any) -> Never:
        raise OrdersAreReadOnly("delete")


class Order(ReadOnlyModel):
    """One order. Times are UTC; ids rise with time."""

    id: "_Field" = models.BigIntegerField(primary_key=True)
    order_no: "_Field" = models.CharField(max_length=32)
    created_at: "_Field" = models.DateTimeField()
    paid_at: "_Field" = models.DateTimeField(null=True)
    status: "_Field" = models.CharField(max_length=16)
    customer_name: "_Field" = models.CharField(max_length=64)
    phone: "_Field" = models.CharField(max_length=20)
    address: "_Field" = models.TextField()
    sku: "_Field" = models.CharField(max_length=32)
    quantity: "_Field" = models.IntegerField()
    unit_price: "_Field" = models.DecimalField(max_digits=12, decimal_places=2)
    total: "_Field" = models.DecimalField(max_digits=12, decimal_places=2)
    currency: "_Field" = models.CharField(max_length=3)
    remark: "_Field" = models.TextField(null=True)  # noqa: DJ001  # the table is as it is

    class Meta:
        managed = False
        db_table = "orders"

    def __str__(self) -> str:
        """The key only: no other cell may reach a log."""
        return str(self.pk)


class OpsUser(AbstractBaseUser):
    """Who is logged in to the ops page. Lives in the session, never in a table.

    Django's auth wants a user model. This one has a text key (the owner's name), no table, and no
    `last_login`: with that field a login would write.
    """

    id: "_Field" = models.CharField(primary_key=True, max_length=255)
    last_login = None

    USERNAME_FIELD = "id"

    class Meta:
        managed = False
