"""What every session with the orders database gets: read-only, a time limit, the business zone, no rows of the past.

The session's own read-only switch is one guard of four: the models refuse, the router refuses, the session
refuses, and the role should have no right to write (`grants`).
"""

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from exports.conf import conf
from exports.errors import SourceUnavailable
from exports.kinds.orders.failures import REPLICA, translated

IDLE_S = 1.0
"""A connection that was not used for this long is asked whether it still lives: servers drop idle ones."""
_PROGRESS_STEPS = 10_000
_REPLAYED = "SELECT NOT pg_is_in_recovery() OR pg_snapshot_xmin(pg_current_snapshot())::text::numeric >= %s::numeric"


@dataclass(slots=True)
class Session:
    """What is known of one open connection. deadline: monotonic seconds, SQLite only. settled: see `statement`."""

    limit_ms: int = 0
    deadline: float = float("inf")
    used_at: float = 0.0
    settled: str = ""


_sessions: "WeakKeyDictionary[BaseDatabaseWrapper, Session]" = WeakKeyDictionary()


def install() -> None:
    connection_created.connect(_on_connection, dispatch_uid="exports.read_only")


@contextmanager
def statement(*, limit_ms: int, settled: str = "") -> Iterator[BaseDatabaseWrapper]:
    """The orders connection, alive, for one statement of at most `limit_ms`.

    settled: PostgreSQL only; a replica that has not replayed all transactions below this number is not read.

    Raises: SourceUnavailable, PageTooLarge or StepBroken in place of database errors.
    """
    connection = connections[conf().database]
    with translated(connection):
        _revive(connection)
        _limit(connection, limit_ms=limit_ms)
        _refuse_stale(connection, settled=settled)
        try:
            yield connection
        finally:
            session = _sessions[connection]
            session.deadline, session.used_at = float("inf"), time.monotonic()


def _revive(connection: BaseDatabaseWrapper) -> None:
    """Drop a connection that failed, or died or grew too old while idle; open one if there is none.

    One in use is left alone: to ask whether it lives would cost each page another round trip.
    """
    if connection.errors_occurred or _idle(connection):
        connection.errors_occurred = True  # so that Django asks, once
        connection.close_if_unusable_or_obsolete()
    connection.ensure_connection()


def _idle(connection: BaseDatabaseWrapper) -> bool:
    session = _sessions.get(connection)
    return session is None or time.monotonic() - session.used_at > IDLE_S


def _limit(connection: BaseDatabaseWrapper, *, limit_ms: int) -> None:
    """Set the statement time limit, with a round trip only when it changes."""
    session = _sessions.setdefault(connection, Session())
    session.deadline = time.monotonic() + limit_ms / 1000
    if session.limit_ms == limit_ms or connection.vendor == "sqlite":
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT set_config('statement_timeout', %s, false)", [str(limit_ms)])
        elif getattr(connection, "mysql_is_mariadb", True):
            cursor.execute("SET SESSION max_statement_time = %s", [limit_ms / 1000])
        else:
            cursor.execute("SET SESSION max_execution_time = %s", [limit_ms])
    session.limit_ms = limit_ms


def _refuse_stale(connection: BaseDatabaseWrapper, *, settled: str) -> None:
    """Raises: SourceUnavailable. Asked once a plan and connection: a server does not go back in time."""
    session = _sessions[connection]
    if settled in ("", session.settled):
        return
    with connection.cursor() as cursor:
        cursor.execute(_REPLAYED, [settled])
        if not cursor.fetchone()[0]:
            raise SourceUnavailable(REPLICA)
    session.settled = settled


def _on_connection(*, connection: BaseDatabaseWrapper, **_: Any) -> None:
    """Receiver of `connection_created`; other databases are left alone."""
    if connection.alias != conf().database:
        return
    _sessions[connection] = Session(used_at=time.monotonic())
    _GUARDS[connection.vendor](connection)


def _guard_postgresql(connection: BaseDatabaseWrapper) -> None:
    """Read-only, ISO dates, shortest floats, and the business zone, told to Django too, which reads times by it."""
    connection.settings_dict["TIME_ZONE"] = conf().business_zone
    for cached in ("timezone", "timezone_name"):
        connection.__dict__.pop(cached, None)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('default_transaction_read_only', 'on', false),"
            " set_config('DateStyle', 'ISO', false), set_config('extra_float_digits', '1', false),"
            " set_config('TimeZone', %s, false)",
            [conf().business_zone],
        )


def _guard_mysql(connection: BaseDatabaseWrapper) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION READ ONLY")


def _guard_sqlite(connection: BaseDatabaseWrapper) -> None:
    """`query_only`, and a time limit by the progress handler: SQLite has none of its own."""
    session = _sessions[connection]
    raw: Any = connection.connection
    raw.execute("PRAGMA query_only = ON")
    raw.create_function("export_float", 1, _float_text, deterministic=True)
    raw.create_function("export_crc32", 1, _crc32, deterministic=True)
    raw.set_progress_handler(lambda: time.monotonic() > session.deadline, _PROGRESS_STEPS)


def _float_text(value: Any) -> str | None:
    """SQLite's own text of a float keeps 15 digits only."""
    return repr(value) if isinstance(value, float) else None if value is None else str(value)


def _crc32(key: Any) -> int:
    """SQLite has no checksum of its own."""
    return zlib.crc32(str(key).encode())


_GUARDS = {"postgresql": _guard_postgresql, "mysql": _guard_mysql, "sqlite": _guard_sqlite}
