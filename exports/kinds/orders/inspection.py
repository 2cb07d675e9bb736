"""Whether the table can be exported well: a unique key, an index on the time, and pages read by an index.

The database is asked for its plan of the page query, with the day of the newest row, so that what is judged is what
would run.
"""

import datetime as dt
import json
import zoneinfo
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from exports import clocks
from exports.conf import conf
from exports.contracts import Column, TimeForm
from exports.kinds.orders import guards, plan
from exports.kinds.orders.pages import spelling_of
from exports.kinds.orders.plan import Bounds
from exports.kinds.orders.source import Source
from exports.kinds.orders.statements import compile_page

_SMALL = 10_000
"""A table with fewer rows may well be scanned."""


@dataclass(frozen=True, slots=True)
class TableFinding:
    """grave: exports would be wrong; otherwise a finding that is not fit only makes them slow."""

    name: str
    fit: bool
    grave: bool
    text: str


def inspect(source: Source, *, columns: Sequence[Column], zone: zoneinfo.ZoneInfo) -> list[TableFinding]:
    """Raises: SourceUnavailable, StepBroken when the database cannot tell."""
    with _statement() as connection:
        if not _exists(connection, source.table):
            return [TableFinding("table", fit=False, grave=True, text=f"there is no table {source.table} to be seen")]
        constraints = _constraints(connection, source.table)
    return [_clock(), *_keys(source, constraints), _pages(source, columns=columns, zone=zone)]


def _clock() -> TableFinding:
    """The database says which rows are old enough for a file."""
    wrong = clocks.disagreement("the database's clock", plan.read_clock()[0].timestamp())
    return TableFinding("clock", fit=not wrong, grave=False, text=wrong or "agrees with this host's")


def has_time_index(source: Source) -> bool:
    """Raises: as `inspect`."""
    with _statement() as connection:
        constraints = _constraints(connection, source.table)
    return _is_indexed(source, constraints)


def _is_indexed(source: Source, constraints: Sequence[dict[str, Any]]) -> bool:
    return any(found["index"] and found["columns"][:1] == [source.time_field] for found in constraints)


def _statement() -> Any:
    return guards.statement(limit_ms=conf().plan_statement_timeout_ms)


def _exists(connection: BaseDatabaseWrapper, table: str) -> bool:
    with connection.cursor() as cursor:
        return table in connection.introspection.table_names(cursor, include_views=True)


def _constraints(connection: BaseDatabaseWrapper, table: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        found: dict[str, Any] = dict(connection.introspection.get_constraints(cursor, table))
    return list(found.values())


def _keys(source: Source, constraints: Sequence[dict[str, Any]]) -> Iterator[TableFinding]:
    # SQLite calls a primary key by its name alone.
    unique = any(
        found["columns"] == [source.key] and (found["unique"] or found["primary_key"]) for found in constraints
    )
    text = "is unique" if unique else "has no unique index: rows could be lost between two pages"
    yield TableFinding("key", fit=unique, grave=True, text=f"{source.table}.{source.key} {text}")
    indexed = _is_indexed(source, constraints)
    text = "has an index" if indexed else "has no index: each count at plan reads the whole table"
    yield TableFinding("time index", fit=indexed, grave=False, text=f"{source.table}.{source.time_field} {text}")


def _pages(source: Source, *, columns: Sequence[Column], zone: zoneinfo.ZoneInfo) -> TableFinding:
    """The plan of a page of the newest row's day."""
    shard_bounds = _newest_day(source, zone=zone)
    if shard_bounds is None:
        return TableFinding("page query", fit=True, grave=False, text=f"{source.table} is empty; nothing to judge")
    with _statement() as connection:
        spelling = spelling_of(connection, form=TimeForm.TEXT, masked=frozenset())
        query = compile_page(source, connection=connection, columns=columns, spelling=spelling, first=True)
        parameters = query.parameters(connection, shard_bounds, key=int(shard_bounds.first), limit=conf().page_rows)
        index = _EXPLAINS[connection.vendor](connection, query.page, parameters, source.table)
    small = int(shard_bounds.last) - int(shard_bounds.first) < _SMALL
    text = f"a page is read by {index}" if index else f"a page reads the whole of {source.table}"
    note = "; the table is small" if small and not index else ""
    return TableFinding("page query", fit=bool(index) or small, grave=False, text=text + note)


def _newest_day(source: Source, *, zone: zoneinfo.ZoneInfo) -> Bounds | None:
    with _statement() as connection:
        newest = source.rows(connection).order_by("-pk").values_list("pk", source.time_field).first()
    if newest is None:
        return None
    key, time = newest
    time = time if time.tzinfo else time.replace(tzinfo=dt.UTC)
    day = time.astimezone(zone).date()
    return Bounds.from_text(plan.day_now(source, day, largest=key, zone=zone).bounds)


def _explain_postgresql(connection: BaseDatabaseWrapper, sql: str, parameters: list[Any], table: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", parameters)
        [answer] = cursor.fetchone()
    tree = answer if isinstance(answer, list) else json.loads(answer)
    for node in _nodes(tree[0]["Plan"]):
        if node.get("Relation Name") == table and node["Node Type"] == "Seq Scan":
            return ""
    return next((node["Index Name"] for node in _nodes(tree[0]["Plan"]) if "Index Name" in node), "")


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", ()):
        yield from _nodes(inner)


def _explain_sqlite(connection: BaseDatabaseWrapper, sql: str, parameters: list[Any], table: str) -> str:
    """Lines such as `SEARCH orders USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)`."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        details = [str(row[3]) for row in cursor.fetchall()]
    search = next((line for line in details if line.startswith(f"SEARCH {table} USING ")), "")
    return search.removeprefix(f"SEARCH {table} USING ").partition(" (")[0]


def _explain_mysql(connection: BaseDatabaseWrapper, sql: str, parameters: list[Any], table: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}", parameters)
        names = [column[0] for column in cursor.description]
        steps = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return next((str(step["key"]) for step in steps if step["table"] == table and step["key"]), "")


_EXPLAINS = {"postgresql": _explain_postgresql, "sqlite": _explain_sqlite, "mysql": _explain_mysql}
