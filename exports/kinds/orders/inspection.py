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
from exports.kinds.orders import guards, ordering, plan
from exports.kinds.orders.bounds import Bounds
from exports.kinds.orders.pages import spelling_of
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
    return [_clock(), *_keys(source, constraints), _pages(source, constraints, columns=columns, zone=zone)]


def _clock() -> TableFinding:
    """The database says which rows are old enough for a file."""
    wrong = clocks.disagreement("the database's clock", plan.read_clock()[0].timestamp())
    return TableFinding("clock", fit=not wrong, grave=False, text=wrong or "agrees with this host's")


def has_time_index(source: Source) -> bool:
    """Raises: as `inspect`."""
    with _statement() as connection:
        constraints = _constraints(connection, source.table)
    return _has_index(constraints, source.time_field)


def _has_index(constraints: Sequence[dict[str, Any]], *columns: str) -> bool:
    """Whether the first columns of one are these."""
    return any(found["index"] and found["columns"][: len(columns)] == [*columns] for found in constraints)


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
    indexed = _has_index(constraints, source.time_field)
    text = "has an index" if indexed else "has no index: each count at plan reads the whole table"
    yield TableFinding("time index", fit=indexed, grave=False, text=f"{source.table}.{source.time_field} {text}")


def _pages(
    source: Source, constraints: Sequence[dict[str, Any]], *, columns: Sequence[Column], zone: zoneinfo.ZoneInfo
) -> TableFinding:
    """The plan of a page of the newest row's day."""
    shard_bounds = _newest_day(source, zone=zone)
    if shard_bounds is None:
        return TableFinding("page query", fit=True, grave=False, text=f"{source.table} is empty; nothing to judge")
    with _statement() as connection:
        spelling = spelling_of(connection, form=TimeForm.TEXT, masked=frozenset())
        query = compile_page(source, connection=connection, columns=columns, spelling=spelling, first=True)
        parameters = query.parameters(connection, shard_bounds, place=shard_bounds.first, limit=conf().page_rows)
        way = _EXPLAINS[connection.vendor](connection, query.inner, parameters, source.table)
    wanted = ordering.of(source).index
    if way.index and (not way.sorts or not wanted or _has_index(constraints, *wanted)):
        return TableFinding("page query", fit=True, grave=False, text=f"a page is read by {way.index}")
    text = f"a page sorts its day, read by {way.index}" if way.index else f"a page reads the whole of {source.table}"
    if _is_small(source):
        return TableFinding("page query", fit=True, grave=False, text=f"{text}; the table is small")
    remedy = f": create an index on {source.table} ({', '.join(wanted)})" if wanted else ""
    return TableFinding("page query", fit=False, grave=False, text=text + remedy)


def _is_small(source: Source) -> bool:
    with _statement() as connection:
        return source.rows(connection)[:_SMALL].count() < _SMALL


def _newest_day(source: Source, *, zone: zoneinfo.ZoneInfo) -> Bounds | None:
    with _statement() as connection:
        timed = source.rows(connection).filter(**{f"{source.time_field}__isnull": False})
        rows = timed.order_by(*ordering.of(source).order_by)
        newest = rows.values_list(source.time_field, flat=True).last()
    if newest is None:
        return None
    time = newest if newest.tzinfo else newest.replace(tzinfo=dt.UTC)
    day = time.astimezone(zone).date()
    return Bounds.from_text(plan.day_now(source, day, zone=zone, limit_ms=conf().plan_statement_timeout_ms).bounds)


@dataclass(frozen=True, slots=True)
class _Way:
    """How a page's rows are found. index: its name; "" if the whole table is read. sorts: they are not found in order."""

    index: str
    sorts: bool


def _explain_postgresql(connection: BaseDatabaseWrapper, sql: str, parameters: list[Any], table: str) -> _Way:
    """An incremental sort is none: it sorts the rows of one time only."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", parameters)
        [answer] = cursor.fetchone()
    tree = answer if isinstance(answer, list) else json.loads(answer)
    nodes = list(_nodes(tree[0]["Plan"]))
    sorts = any(node["Node Type"] == "Sort" for node in nodes)
    if any(node.get("Relation Name") == table and node["Node Type"] == "Seq Scan" for node in nodes):
        return _Way("", sorts)
    return _Way(next((node["Index Name"] for node in nodes if "Index Name" in node), ""), sorts)


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", ()):
        yield from _nodes(inner)


def _explain_sqlite(connection: BaseDatabaseWrapper, sql: str, parameters: list[Any], table: str) -> _Way:
    """Lines such as `SEARCH orders USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)`, `USE TEMP B-TREE FOR ORDER BY`."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        details = [str(row[3]) for row in cursor.fetchall()]
    search = next((line for line in details if line.startswith(f"SEARCH {table} USING ")), "")
    index = search.removeprefix(f"SEARCH {table} USING ").partition(" (")[0]
    return _Way(index, "USE TEMP B-TREE FOR ORDER BY" in details)


def _explain_mysql(connection: BaseDatabaseWrapper, sql: str, parameters: list[Any], table: str) -> _Way:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {sql}", parameters)
        names = [column[0] for column in cursor.description]
        steps = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    index = next((str(step["key"]) for step in steps if step["table"] == table and step["key"]), "")
    return _Way(index, any("Using filesort" in str(step["Extra"]) for step in steps))


_EXPLAINS = {"postgresql": _explain_postgresql, "sqlite": _explain_sqlite, "mysql": _explain_mysql}
