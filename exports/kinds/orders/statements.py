"""The SQL of a page. The inner query is a Django queryset; what makes text of it is wrapped around as text.

* inner: columns of the rows of the day behind a place (`ordering`), with `LIMIT %s`
* page: the rows of `inner` joined to one value (PostgreSQL, SQLite) or one value a row (MariaDB, MySQL)
* rows: each cell of `inner` as a value of bytes, for a page that must be repaired
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DecimalField

from exports.contracts import Column
from exports.kinds.orders import cells, ordering
from exports.kinds.orders.bounds import Bounds
from exports.kinds.orders.ordering import Ordering
from exports.kinds.orders.source import CompiledRows, Marks, Source, compiled

_CHUNK = 40  # PostgreSQL takes at most 100 arguments to a function

_PAGES = {
    # The length of the joined value less its separators is the sum of the rows' lengths; the same aggregate named
    # twice is computed once, and a sum over the rows would make each row's text twice. PostgreSQL never cuts a value.
    "postgresql": "SELECT string_agg(line, E'\\x1e' ORDER BY {sql.joined}), count(*), {sql.last},"
    " octet_length(string_agg(line, E'\\x1e' ORDER BY {sql.joined})) - count(*) + 1"
    " FROM (SELECT {row} AS line, {sql.carried} FROM ({inner}) AS read_rows) AS page",
    # SQLite takes no ORDER BY in group_concat: the order of the subquery holds, and the reader checks it.
    # MATERIALIZED: without it the text of each row is made twice, once for its length.
    "sqlite": "WITH page AS MATERIALIZED (SELECT {row} AS line, {sql.carried} FROM ({inner}) AS read_rows)"
    " SELECT CAST(group_concat(line, char(30)) AS BLOB), count(*), {sql.last}, sum(length(CAST(line AS BLOB))) FROM page",
    "mysql": "SELECT {row} AS line, {sql.place} FROM ({inner}) AS read_rows ORDER BY {sql.order}",
}
_POSTGRESQL_CELL = r"E'\x1f'"
_ROWS = "SELECT {cells}, {sql.place} FROM ({inner}) AS read_rows ORDER BY {sql.order}"
_BYTES = {
    "postgresql": "convert_to(concat({cell}), 'UTF8')",
    "sqlite": "CAST({cell} AS BLOB)",
    "mysql": "CAST(CONVERT({cell} USING utf8mb4) AS BINARY)",
}


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Three texts about the same page; `parameters` fits each."""

    inner: str
    page: str
    rows: str
    _ordering: Ordering
    _inner: CompiledRows

    def parameters(self, connection: BaseDatabaseWrapper, bounds: Bounds, *, place: str, limit: int) -> list[Any]:
        values = self._ordering.page_values(connection, bounds, place=place)
        return [*self._inner.parameters(**values), limit]


def compile_page(
    source: Source,
    *,
    connection: BaseDatabaseWrapper,
    columns: Sequence[Column],
    spelling: cells.Spelling,
    first: bool,
) -> PageQuery:
    """first: the place given later belongs to the page itself (`>=`); else the page starts behind it (`>`)."""
    shown = [column for column in columns if column.name not in spelling.masked]
    order = ordering.of(source)
    inner = _inner(source, order, connection=connection, columns=shown, first=first)
    row = [_cell(source, column, connection=connection, spelling=spelling) for column in columns]
    limited = f"{inner.sql} LIMIT %s"
    parts: dict[str, Any] = {"inner": limited, "sql": order.page_sql(connection)}
    vendor = connection.vendor
    return PageQuery(
        inner=limited,
        page=_PAGES[vendor].format(row=_ROW_TEXTS[vendor](row), **parts),
        rows=_ROWS.format(cells=", ".join(_BYTES[vendor].format(cell=cell.text) for cell in row), **parts),
        _ordering=order,
        _inner=inner,
    )


def _inner(
    source: Source, order: Ordering, *, connection: BaseDatabaseWrapper, columns: Sequence[Column], first: bool
) -> CompiledRows:
    marks = Marks.of(source, connection)
    names = dict.fromkeys([*order.fields, *(column.name for column in columns)])
    rows = source.rows(connection).filter(order.page(marks, first=first)).order_by(*order.order_by)
    return compiled(source, connection, rows.values_list(*names), marks)


@dataclass(frozen=True, slots=True)
class _Cell:
    """text: SQL of its text, NULL for empty. required: its column, where the model allows no NULL; the table may."""

    text: str
    required: str


def _cell(source: Source, column: Column, *, connection: BaseDatabaseWrapper, spelling: cells.Spelling) -> _Cell:
    quoted, field = connection.ops.quote_name(column.name), source.field(column.name)
    # Digits behind the point that the database itself keeps for a column; None if it is no decimal.
    scale = field.decimal_places if isinstance(field, DecimalField) else None
    text = cells.sql(column, spelling=spelling, quoted=quoted, stored_scale=scale)
    masked = column.name in spelling.masked  # a constant, and its column is not read
    return _Cell(text, required="" if field.null or masked else quoted)


def _postgresql_row(row: Sequence[_Cell]) -> str:
    """The text of a row, its cells parted by U+001F, NULL as empty.

    By `concat_ws`, which leaves NULL out: `concat`, to which each separator is one more value, takes a fifth more of a
    page's time, and makes those rows alone that have NULL where the model allows none.
    """
    filled = [cell.text if cell.required else f"concat({cell.text})" for cell in row]
    quick = _in_chunks(filled, rf"concat_ws({_POSTGRESQL_CELL}, {{}})", between=", ")
    required = [cell.required for cell in row if cell.required]
    if not required:
        return quick
    sure = _in_chunks([cell.text for cell in row], "concat({})", between=f", {_POSTGRESQL_CELL}, ")
    return f"CASE WHEN ROW({', '.join(required)}) IS NOT NULL THEN {quick} ELSE {sure} END"


def _in_chunks(texts: Sequence[str], function: str, *, between: str) -> str:
    """A function of all texts, a few to each call; the results are parted as cells are."""
    calls = [function.format(between.join(texts[at : at + _CHUNK])) for at in range(0, len(texts), _CHUNK)]
    return f" || {_POSTGRESQL_CELL} || ".join(calls)


def _sqlite_row(row: Sequence[_Cell]) -> str:
    return " || char(31) || ".join(f"ifnull({cell.text}, '')" for cell in row)


def _mysql_row(row: Sequence[_Cell]) -> str:
    filled = ", ".join(f"ifnull({cell.text}, '')" for cell in row)
    return f"CAST(CONVERT(concat_ws(CHAR(31 USING utf8mb4), {filled}) USING utf8mb4) AS BINARY)"


_ROW_TEXTS = {"postgresql": _postgresql_row, "sqlite": _sqlite_row, "mysql": _mysql_row}
