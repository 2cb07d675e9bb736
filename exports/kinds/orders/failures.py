"""Driver errors as errors of this product.

Only codes pass: driver texts may quote cells of rows, so neither text nor cause goes along.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from exports.errors import ExportError, PageTooLarge, SourceUnavailable, StepBroken

TIMEOUT = "database_timeout"
CONNECTION = "database_connection"
REPLICA = "replica_conflict"
MEMORY = "page_too_large"

# Source: PostgreSQL manual, appendix A. 40P01: a replica's own way to end a deadlock with recovery.
_POSTGRESQL = {
    "57014": TIMEOUT,
    "55P03": TIMEOUT,
    "40001": REPLICA,
    "40P01": REPLICA,
    "57P01": CONNECTION,
    "57P02": CONNECTION,
    "57P03": CONNECTION,
    "57P05": CONNECTION,
    "25P03": CONNECTION,
    "53300": CONNECTION,
    "53200": MEMORY,
    "54000": MEMORY,
}
# Source: MariaDB and MySQL error references. 1969: max_statement_time; 3024: max_execution_time.
_MYSQL = {
    **dict.fromkeys((1205, 1317, 1969, 3024), TIMEOUT),
    1213: REPLICA,
    **dict.fromkeys((0, 1040, 1042, 1053, 1080, 1152, 1158, 1159, 1160, 1161, 1184), CONNECTION),
    **dict.fromkeys((1927, 2002, 2003, 2006, 2013, 2014, 2055, 4031), CONNECTION),
    **dict.fromkeys((5, 1037, 1038, 1041, 1153), MEMORY),
}
# Source: sqlite.org/rescode.html, primary codes.
_SQLITE = {5: TIMEOUT, 6: TIMEOUT, 9: TIMEOUT, 10: CONNECTION, 14: CONNECTION, 7: MEMORY, 18: MEMORY}


@contextmanager
def translated(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Raises: SourceUnavailable, PageTooLarge or StepBroken in place of what the driver raised."""
    try:
        yield
    except Error as error:
        failure = translate(error, vendor=connection.vendor)
    except MemoryError:
        # What was not read of the answer would be taken for the next one.
        connection.close()
        failure = PageTooLarge("a page does not fit into memory")
    else:
        return
    raise failure from None


def translate(error: Error, *, vendor: str) -> ExportError:
    """What to raise in place of a database error of Django."""
    code = _code(error, vendor=vendor)
    if code == MEMORY:
        return PageTooLarge("a page does not fit into memory")
    if code is not None:
        return SourceUnavailable(code)
    return StepBroken(f"{type(error).__name__} {_number(error, vendor=vendor)}")


def _code(error: Error, *, vendor: str) -> str | None:
    number = _number(error, vendor=vendor)
    if vendor == "postgresql":
        return _postgresql_code(error, state=str(number or ""))
    if vendor == "mysql":
        return _MYSQL.get(int(number or 0)) if isinstance(error, OperationalError | InterfaceError) else None
    return _SQLITE.get(int(number or 0) & 0xFF)


def _postgresql_code(error: Error, *, state: str) -> str | None:
    """Psycopg gives no SQLSTATE when the connection was lost or never made."""
    if state in _POSTGRESQL:
        return _POSTGRESQL[state]
    lost = not state and isinstance(error, OperationalError | InterfaceError)
    return CONNECTION if lost or state.startswith("08") else None


def _number(error: Error, *, vendor: str) -> str | int | None:
    """SQLSTATE on PostgreSQL, the server's or client's number elsewhere."""
    cause = error.__cause__
    if vendor == "postgresql":
        return getattr(cause, "sqlstate", None)
    if vendor == "sqlite":
        return getattr(cause, "sqlite_errorcode", None)
    first = error.args[0] if error.args else None
    return first if isinstance(first, int) else None
