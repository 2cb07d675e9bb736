import sqlite3
from contextlib import closing

import pytest

from config import databases
from exports.errors import SettingInvalid


def test_postgresql_gives_its_times_in_the_business_zone_and_is_asked_for_its_health():
    found = databases.orders("postgresql://reader:pw@db:5433/shop", business_zone="Asia/Shanghai")
    assert (found["TIME_ZONE"], found["CONN_MAX_AGE"], found["CONN_HEALTH_CHECKS"]) == ("Asia/Shanghai", 300, True)
    assert (found["OPTIONS"]["connect_timeout"], found["OPTIONS"]["application_name"]) == (5, "order-exports")


def test_an_option_of_the_url_wins_over_the_default():
    found = databases.orders("postgresql://db/shop?connect_timeout=2&sslmode=require", business_zone="UTC")
    assert (int(found["OPTIONS"]["connect_timeout"]), found["OPTIONS"]["sslmode"]) == (2, "require")


def test_mariadb_is_read_through_pymysql_with_all_of_unicode():
    found = databases.orders("mysql://reader@db/shop", business_zone="Asia/Shanghai")
    import MySQLdb

    assert (MySQLdb.__name__, found["OPTIONS"]["charset"]) == ("pymysql", "utf8mb4")
    assert "TIME_ZONE" not in found


def test_a_sqlite_file_is_never_made_or_changed(tmp_path):
    file = tmp_path / "the orders.sqlite3"
    found = databases.orders(f"sqlite:///{file}", business_zone="UTC")
    assert found["OPTIONS"]["uri"] is True
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        sqlite3.connect(found["NAME"], uri=True)
    assert list(tmp_path.iterdir()) == []
    sqlite3.connect(file).close()
    with (
        closing(sqlite3.connect(found["NAME"], uri=True)) as reader,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        reader.execute("create table t (a)")


@pytest.mark.parametrize("url", ["oracle://scott:tiger@db/shop", "nonsense:tiger", "postgresql://user:ti#ger/@db"])
def test_a_url_of_no_known_database_is_refused_without_its_text(url):
    with pytest.raises(SettingInvalid) as caught:
        databases.orders(url, business_zone="UTC")
    assert caught.value.name == "DATABASE_URL"
    assert "tiger" not in str(caught.value)
