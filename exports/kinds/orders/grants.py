"""What the database role may do beyond reading. Used by `export_doctor` and a system check."""

import re

from django.db.backends.base.base import BaseDatabaseWrapper

from exports.conf import conf
from exports.kinds.orders import guards
from exports.kinds.orders.source import Source

_READING = frozenset(("SELECT", "USAGE", "SHOW VIEW", "REPLICATION CLIENT", "BINLOG MONITOR", "SLAVE MONITOR"))
_POSTGRESQL = """
    SELECT p FROM unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) AS p
    WHERE has_table_privilege(current_user, %s::regclass, p)
    UNION ALL SELECT 'SUPERUSER' FROM pg_roles WHERE rolname = current_user AND rolsuper
"""
_GRANT = re.compile(r"GRANT (.+?) ON (?:TABLE )?\S+ TO ")
_COLUMNS = re.compile(r"\s*\([^)]*\)")


def write_privileges(source: Source) -> tuple[str, ...]:
    """Names of the rights that the role has and should not have; empty is right.

    Raises: SourceUnavailable or StepBroken when the database cannot tell.
    """
    with guards.statement(limit_ms=conf().statement_timeout_ms) as connection:
        return _PRIVILEGES[connection.vendor](connection, source.table)


def _postgresql(connection: BaseDatabaseWrapper, table: str) -> tuple[str, ...]:
    with connection.cursor() as cursor:
        cursor.execute(_POSTGRESQL, [connection.ops.quote_name(table)])
        return tuple(privilege for (privilege,) in cursor.fetchall())


def _mysql(connection: BaseDatabaseWrapper, _table: str) -> tuple[str, ...]:
    with connection.cursor() as cursor:
        cursor.execute("SHOW GRANTS")
        grants = [_GRANT.match(text) for (text,) in cursor.fetchall()]
    found = [name.strip() for grant in grants if grant for name in _COLUMNS.sub("", grant[1]).split(",")]
    return tuple(name for name in dict.fromkeys(found) if name not in _READING)


def _sqlite(connection: BaseDatabaseWrapper, _table: str) -> tuple[str, ...]:
    """SQLite has no roles: only a file opened with `mode=ro` cannot be written."""
    return () if "mode=ro" in str(connection.settings_dict["NAME"]) else ("WRITABLE FILE",)


_PRIVILEGES = {"postgresql": _postgresql, "mysql": _mysql, "sqlite": _sqlite}
