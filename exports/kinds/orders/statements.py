"""The SQL of a page. The inner query is a Django queryset; what makes text of it is wrapped around as text.

* inner: columns of the rows of the day with `key > %s AND key <= last key`, `ORDER BY key LIMIT %s`
* page: the rows of `inner` joined to one value (PostgreSQL, SQLite) or one value a row (MariaDB, MySQL)
* rows: each cell of `inner` as a value of bytes, for a page that must be repaired
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DecimalField

from exports.contracts import Column
from exports.kinds.orders import cells
from exports.kinds.orders.plan import Bounds
from exports.kinds.orders.source import CompiledRows, Marks, Source, compiled

_CHUNK = 40  # PostgreSQL takes at most 100 arguments to a function

_PAGES = {
    # The length of the joined value less its separators is the sum of the rows' lengths; the same aggregate named
    # twice is computed once, and a sum over the rows would make each row's text twice. PostgreSQL never cuts a value.
    "postgresql": "SELECT string_agg(line, E'\\x1e' ORDER BY k), count(*), max(k),"
    " octet_length(string_agg(line, E'\\x1e' ORDER BY k)) - count(*) + 1"
    " FROM (SELECT {row} AS line, {key} AS k FROM ({inner}) AS read_rows) AS page",
    # SQLite takes no ORDER BY in group_concat: the order of the subquery holds, and the reader checks it.
    # MATERIALIZED: without it the text of each row is made twice, once for its length.
    "sqlite": "WITH page AS MATERIALIZED (SELECT {row} AS line, {key} AS k FROM ({inner}) AS read_rows)"
    " SELECT CAST(group_concat(line, char(30)) AS BLOB), count(*), max(k), sum(length(CAST(line AS BLOB))) FROM page",
    "mysql": "SELECT {row} AS line, {key} AS k FROM ({inner}) AS read_rows ORDER BY k",
}
_ROWS = "SELECT {cells}, {key} AS k FROM ({inner}) AS read_rows ORDER BY k"
_BYTES = {
    "postgresql": "convert_to(concat({cell}), 'UTF8')",
    "sqlite": "CAST({cell} AS BLOB)",
    "mysql": "CAST(CONVERT({cell} USING utf8mb4) AS BINARY)",
}


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Two forms of the same page; `parameters` fits both."""

    page: str
    rows: str
    _source: Source
    _inner: CompiledRows

    def parameters(self, connection: BaseDatabaseWrapper, bounds: Bounds, *, key: int, limit: int) -> list[Any]:
        times = {name: self._source.time(connection, getattr(bounds, name)) for name in ("start", "end")}
        return [*self._inner.parameters(**times, first=key, last=int(bounds.last)), limit]


def compile_page(
    source: Source,
    *,
    connection: BaseDatabaseWrapper,
    columns: Sequence[Column],
    spelling: cells.Spelling,
    first: bool,
) -> PageQuery:
    """first: the key given later belongs to the page itself (`>=`); else the page starts behind it (`>`)."""
    shown = [column for column in columns if column.name not in spelling.masked]
    inner = _inner(source, connection=connection, columns=shown, first=first)
    texts = [_text(source, column, connection=connection, spelling=spelling) for column in columns]
    parts = {"inner": f"{inner.sql} LIMIT %s", "key": connection.ops.quote_name(source.key)}
    vendor = connection.vendor
    return PageQuery(
        page=_PAGES[vendor].format(row=_ROW_TEXTS[vendor](texts), **parts),
        rows=_ROWS.format(cells=", ".join(_BYTES[vendor].format(cell=text) for text in texts), **parts),
        _source=source,
        _inner=inner,
    )


def _inner(source: Source, *, connection: BaseDatabaseWrapper, columns: Sequence[Column], first: bool) -> CompiledRows:
    marks = Marks.of(source, connection)
    names = dict.fromkeys([source.key, *(column.name for column in columns)])
    rows = (
        source.window(connection, start=marks.start, end=marks.end, last=marks.last)
        .filter(**{"pk__gte" if first else "pk__gt": marks.first})
        .order_by("pk")
        .values_list(*names)
    )
    return compiled(source, connection, rows, marks)


def _text(source: Source, column: Column, *, connection: BaseDatabaseWrapper, spelling: cells.Spelling) -> str:
    return cells.sql(
        column,
        spelling=spelling,
        quoted=connection.ops.quote_name(column.name),
        stored_scale=_stored_scale(source, column.name),
    )


def _stored_scale(source: Source, name: str) -> int | None:
    """Digits behind the point that the database itself keeps for a column; None if it is no decimal."""
    field = source.field(name)
    return field.decimal_places if isinstance(field, DecimalField) else None


def _postgresql_row(texts: Sequence[str]) -> str:
    """`concat` shows NULL as empty; in pieces, because a function takes a limited number of arguments."""
    chunks = [texts[at : at + _CHUNK] for at in range(0, len(texts), _CHUNK)]
    pieces = ["concat({})".format(r", E'\x1f', ".join(chunk)) for chunk in chunks]
    return r" || E'\x1f' || ".join(pieces)


def _sqlite_row(texts: Sequence[str]) -> str:
    return " || char(31) || ".join(f"ifnull({text}, '')" for text in texts)


def _mysql_row(texts: Sequence[str]) -> str:
    filled = ", ".join(f"ifnull({text}, '')" for text in texts)
    return f"CAST(CONVERT(concat_ws(CHAR(31 USING utf8mb4), {filled}) USING utf8mb4) AS BINARY)"


_ROW_TEXTS = {"postgresql": _postgresql_row, "sqlite": _sqlite_row, "mysql": _mysql_row}
