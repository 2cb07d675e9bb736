"""What the peers share: the columns, the order of rows, the arguments and a Django model of the orders table."""

import argparse
import functools

COLUMNS = [
    *("id", "order_no", "created_at", "paid_at", "status", "customer_name", "phone"),
    *("address", "sku", "quantity", "unit_price", "total", "currency", "remark"),
]
PAGE = 2000


def select(money: str = "") -> str:
    """All rows; money: a cast of the two amounts, for readers that know no decimal type."""
    names = [f"{name}::{money} AS {name}" if money and name in ("unit_price", "total") else name for name in COLUMNS]
    return f"SELECT {', '.join(names)} FROM orders ORDER BY created_at, id"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True, help="of the orders database")
    parser.add_argument("--out", required=True)
    return parser.parse_args()


@functools.cache
def order_model(url: str, *apps: str):
    """Configure Django on the spot; an unmanaged model of the table."""
    import dj_database_url
    import django
    import pymysql
    from django.conf import settings

    pymysql.install_as_MySQLdb()
    settings.configure(
        USE_TZ=True, TIME_ZONE="UTC", INSTALLED_APPS=list(apps), DATABASES={"default": dj_database_url.parse(url)}
    )
    django.setup()
    from django.db import models

    class Order(models.Model):
        id = models.BigIntegerField(primary_key=True)
        order_no = models.CharField(max_length=32)
        created_at = models.DateTimeField()
        paid_at = models.DateTimeField(null=True)
        status = models.CharField(max_length=16)
        customer_name = models.CharField(max_length=64)
        phone = models.CharField(max_length=20)
        address = models.TextField()
        sku = models.CharField(max_length=32)
        quantity = models.IntegerField()
        unit_price = models.DecimalField(max_digits=12, decimal_places=2)
        total = models.DecimalField(max_digits=12, decimal_places=2)
        currency = models.CharField(max_length=3)
        remark = models.TextField(null=True)

        class Meta:
            app_label = "peers"
            managed = False
            db_table = "orders"

    return Order
