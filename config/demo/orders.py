"""The sample orders of the demo: made once, in one transaction or one rename, with a note of what they are."""

import datetime as dt
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from config.demo import servers
from config.demo.place import Passwords, Place
from exports.kinds.orders import sample


@dataclass(frozen=True, slots=True)
class Wanted:
    rows: int
    days: int
    first_day: str

    @property
    def last_day(self) -> str:
        return (dt.date.fromisoformat(self.first_day) + dt.timedelta(days=self.days - 1)).isoformat()

    def note(self) -> str:
        return json.dumps(asdict(self))


def wanted(*, rows: int, days: int, today: dt.date) -> Wanted:
    """The usual first day, or an earlier one where the window would not have ended yet: no export holds rows of
    the future.
    """
    return Wanted(rows, days, min(sample.FIRST_DAY, today - dt.timedelta(days=days + 1)).isoformat())


def note_made(place: Place, orders: Wanted, *, database: str) -> None:
    """Remember what is there, for the next start."""
    (place.root / "orders.json").write_text(json.dumps({**asdict(orders), "database": database}), "ascii")


def last_made(root: Path, *, database: str, days: int) -> int:
    """Rows of the orders that are there already for this database and as many days, or 0."""
    with suppress(OSError, ValueError):
        found = json.loads((root / "orders.json").read_text("ascii"))
        if (found["database"], found["days"]) == (database, days):
            return int(found["rows"])
    return 0


def sqlite_url(place: Place, orders: Wanted, *, remade: Callable[[], None]) -> str:
    """The URL of a database with these orders. remade: called when they have to be made."""
    path = place.root / "orders.sqlite3"
    if _sqlite_note(path) != orders.note():
        remade()
        _make_sqlite(path, orders)
    return f"sqlite:///{quote(str(path))}"


def _sqlite_note(path: Path) -> str:
    if path.exists():
        with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.Error):
            return str(connection.execute("SELECT note FROM demo").fetchone()[0])
    return ""


def _make_sqlite(path: Path, orders: Wanted) -> None:
    made = path.with_name("orders.sqlite3.new")
    made.unlink(missing_ok=True)
    with closing(sqlite3.connect(made, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("BEGIN")
        _fill(connection.cursor(), orders, vendor="sqlite")
        connection.execute("CREATE TABLE demo (note text)")
        connection.execute("INSERT INTO demo VALUES (?)", [orders.note()])
        connection.execute("COMMIT")
    made.rename(path)


def postgres_url(port: int, orders: Wanted, *, passwords: Passwords, remade: Callable[[], None]) -> str:
    """As `sqlite_url`; the role in the URL may only read."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(servers.postgres_dsn(port, passwords.owner, database="postgres")) as connection:
        row = connection.execute("SELECT obj_description(to_regclass('public.orders'), 'pg_class')").fetchone()
        if row is None or row[0] != orders.note():
            remade()
            _fill(connection.cursor(), orders, vendor="postgresql")
            connection.execute(sql.SQL("COMMENT ON TABLE orders IS {}").format(sql.Literal(orders.note())))
            connection.execute("DROP ROLE IF EXISTS reader")
            create = sql.SQL("CREATE ROLE reader LOGIN PASSWORD {}").format(sql.Literal(passwords.reader))
            connection.execute(create)
            connection.execute("GRANT SELECT ON orders TO reader")
    return f"postgresql://reader:{passwords.reader}@127.0.0.1:{port}/postgres"


def _fill(cursor: Any, orders: Wanted, *, vendor: str) -> None:
    for statement in sample.statements(vendor):
        cursor.execute(statement)
    first_day = dt.date.fromisoformat(orders.first_day)
    sample.insert(cursor, sample.generate(orders.rows, days=orders.days, first_day=first_day), vendor=vendor)
    sample.analyze(cursor, vendor=vendor)
