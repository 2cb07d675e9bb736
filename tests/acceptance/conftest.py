"""Real processes over a PostgreSQL database whose role may only SELECT."""

import datetime as dt
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from exports.kinds.orders import sample
from tests import services
from tests.conftest import running as started
from tests.processes import Site, running

ROWS = 6000
FIRST = dt.date(2026, 9, 1)
DAYS = 6

Open = Callable[..., Site]


@pytest.fixture(scope="session")
def orders_url(postgres: services.Postgres) -> str:
    """6,000 orders over six business days from 2026-09-01; the role of this URL has no right but SELECT."""
    url = f"postgres://acceptance_reader@{postgres.host}:{postgres.port}/acceptance"
    with psycopg.connect(postgres.dsn("postgres"), autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_database WHERE datname = 'acceptance'").fetchone() is not None:
            return url  # other folders import this fixture too, each as one of its own
    postgres.execute("CREATE DATABASE acceptance")
    with psycopg.connect(postgres.dsn("acceptance"), autocommit=True) as connection:
        for statement in sample.statements("postgresql"):
            connection.execute(statement)
        rows = sample.generate(ROWS, seed=1, days=DAYS, first_day=FIRST)
        sample.insert(connection.cursor(), rows, vendor="postgresql")
        connection.execute("CREATE ROLE acceptance_reader LOGIN")
        connection.execute("GRANT SELECT ON orders TO acceptance_reader")
    return url


@pytest.fixture
def open_site(orders_url: str) -> Iterator[Open]:
    """Makes a site with a Valkey of its own that a test may kill; settings as in `Site`."""
    with ExitStack() as stack:

        def open_one(**settings: str) -> Site:
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="exports-", ignore_cleanup_errors=True))
            )
            (folder / "valkey").mkdir()
            valkey = stack.enter_context(started(lambda _: services.start_valkey(folder / "valkey")))
            site = Site(folder, valkey=valkey, database_url=settings.pop("database_url", orders_url), **settings)
            return stack.enter_context(running(site))

        yield open_one
