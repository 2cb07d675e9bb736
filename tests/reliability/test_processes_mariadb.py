"""Running workers over MariaDB: cut roads and ended sessions."""

import contextlib
import random
import time
from collections.abc import Iterator

import pymysql
import pytest

from exports.kinds.orders import sample
from tests import services
from tests.reliability.installation import Installation, installation, orders

pytestmark = pytest.mark.mariadb


@pytest.fixture(scope="module")
def home(mariadb: services.MariaDB) -> Iterator[Installation]:
    mariadb.execute("CREATE DATABASE reliability")
    mariadb.execute("CREATE USER reliability_reader@'127.0.0.1'")
    with pymysql.connect(host=mariadb.host, port=mariadb.port, user="root", database="reliability") as connection:
        for statement in sample.statements("mysql"):
            connection.cursor().execute(statement)
        sample.insert(connection.cursor(), orders(), vendor="mysql")
        connection.commit()
    mariadb.execute("GRANT SELECT ON reliability.orders TO reliability_reader@'127.0.0.1'")
    url = f"mysql://reliability_reader@{mariadb.host}:{mariadb.port}/reliability"
    with installation(database_url=url) as site:
        site.start(["fast", "lanes", "lanes"])
        yield site


def test_connections_that_are_cut_and_ended_again_and_again_change_nothing(
    home: Installation, mariadb: services.MariaDB
) -> None:
    task_id = home.submit_slow()
    cut: list[int] = []
    ended: list[int] = []
    for _ in range(5):
        cut.append(home.database.cut())
        time.sleep(random.uniform(0.1, 0.4))
        ended.append(end_sessions(mariadb))
        time.sleep(random.uniform(0.1, 0.4))
    home.check(task_id)
    assert sum(cut) > 0 and sum(ended) > 0
    assert home.everyone_lives()


def end_sessions(mariadb: services.MariaDB) -> int:
    """End the product's sessions as an administrator; how many there were."""
    with pymysql.connect(host=mariadb.host, port=mariadb.port, user="root", autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT id FROM information_schema.processlist WHERE user = 'reliability_reader'")
        found = [number for (number,) in cursor.fetchall()]
        for number in found:
            # One that has just left by itself is an error of no interest.
            with contextlib.suppress(pymysql.Error):
                cursor.execute(f"KILL {number}")
    return len(found)
