"""6,000 orders over six business days in PostgreSQL, for a role that may only SELECT: what real processes export."""

import datetime as dt
from collections.abc import Iterator

import psycopg

from exports.kinds.orders import sample
from tests import services

DATABASE = "six_days"
READER = "six_days_reader"
ROWS = 6000
DAYS = 6
FIRST = dt.date(2026, 9, 1)


def orders() -> Iterator[sample.Row]:
    return sample.generate(ROWS, seed=1, days=DAYS, first_day=FIRST)


def make(postgres: services.Postgres) -> str:
    """Make the table; its URL."""
    postgres.execute(f"CREATE DATABASE {DATABASE}")
    with psycopg.connect(postgres.dsn(DATABASE), autocommit=True) as connection:
        for statement in sample.statements("postgresql"):
            connection.execute(statement)
        sample.insert(connection.cursor(), orders(), vendor="postgresql")
        connection.execute(f"CREATE ROLE {READER} LOGIN")
        connection.execute(f"GRANT SELECT ON orders TO {READER}")
    return f"postgres://{READER}@{postgres.host}:{postgres.port}/{DATABASE}"
