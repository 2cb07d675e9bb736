"""One page by one statement: the database makes the text of all its cells.

PostgreSQL and SQLite give the whole page as one value, MariaDB and MySQL a row each (their `group_concat` can
cut inside the last cell without an error). A page whose separators or length do not agree, or that is not valid
UTF-8, holds a cell that no block can carry as it is: it is read again cell by cell and repaired.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from exports.blocks import CELL, ROW, Block
from exports.conf import conf
from exports.contracts import Column, TimeForm
from exports.errors import StepBroken
from exports.kinds.orders import cells, guards, ordering
from exports.kinds.orders.bounds import Bounds
from exports.kinds.orders.source import Source
from exports.kinds.orders.statements import PageQuery, compile_page

EMPTY = Block(data=b"", rows=0, last_key="")
# An unpaired surrogate written as if it were a character: three bytes that must become one U+FFFD, not three.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


@dataclass(frozen=True, slots=True)
class Raw:
    """A page as the database gave it. length: bytes of its rows, without what stands between them."""

    data: bytes
    rows: int
    last_key: str
    length: int


class PageReader:
    """Reads the pages of one table. Keeps compiled statements: one for first pages, one for the others."""

    def __init__(self, source: Source, *, columns: Sequence[Column]) -> None:
        self._source = source
        self._ordering = ordering.of(source)
        self._columns = tuple(columns)
        self._finishers: dict[tuple[cells.Spelling, bool], dict[int, cells.Finisher]] = {}
        self._compiled: dict[tuple[str, cells.Spelling, bool], PageQuery] = {}

    def read(self, bounds: str, *, cursor: str, limit: int, form: TimeForm, masked: frozenset[str]) -> Block:
        """The page behind `cursor`. Raises as `Kind.read`."""
        parsed = Bounds.from_text(bounds)
        if not parsed.last or cursor == parsed.last:
            return EMPTY
        with _statement(parsed) as connection:
            spelling = spelling_of(connection, form=form, masked=masked)
            query = self._query(connection, spelling=spelling, first=not cursor)
            parameters = query.parameters(connection, parsed, place=cursor or parsed.first, limit=limit)
            raw = _FETCH[connection.vendor](connection, query.page, parameters)
        if not raw.rows:
            return EMPTY
        block = Block(raw.data, raw.rows, raw.last_key)
        if not is_pure(block, length=raw.length, width=len(self._columns), validate=not _sends_utf8(connection)):
            block = self._repaired(parsed, query, parameters)
        elif self._source.key not in masked and not _ends_with(self._ordering.key(block.last_key), block):
            raise StepBroken("the database joined a page in another order than that of its keys")
        infinite = connection.vendor == "postgresql" and cells.may_hold_infinite(block.grid, columns=self._columns)
        return finish(block, finishers=self._finishing(spelling, infinite=infinite), width=len(self._columns))

    def _finishing(self, spelling: cells.Spelling, *, infinite: bool) -> dict[int, cells.Finisher]:
        """What Python must finish, by place; kept, because the times of a page are near those of the last."""
        name = (spelling, infinite)
        if name not in self._finishers:
            found = {
                at: cells.finisher(column, spelling=spelling, infinite=infinite)
                for at, column in enumerate(self._columns)
            }
            self._finishers[name] = {at: finisher for at, finisher in found.items() if finisher is not None}
        return self._finishers[name]

    def _query(self, connection: BaseDatabaseWrapper, *, spelling: cells.Spelling, first: bool) -> PageQuery:
        name = (connection.alias, spelling, first)
        if name not in self._compiled:
            self._compiled[name] = compile_page(
                self._source, connection=connection, columns=self._columns, spelling=spelling, first=first
            )
        return self._compiled[name]

    def _repaired(self, bounds: Bounds, query: PageQuery, parameters: list[Any]) -> Block:
        """Read the page again, a value a cell, and replace what no block can carry."""
        with _statement(bounds) as connection, connection.cursor() as cursor:
            cursor.execute(query.rows, parameters)
            rows = cursor.fetchall()
        if not rows:
            return EMPTY
        lines, replaced = [], []
        for *values, place in rows:
            given = [bytes(value or b"") for value in values]
            repaired = [repair(cell) for cell in given]
            lines.append(CELL.join(repaired))
            if repaired != given:
                replaced.append(self._ordering.key(str(place)))
        return Block(ROW.join(lines), len(rows), str(rows[-1][-1]), tuple(replaced))


def is_pure(block: Block, *, length: int, width: int, validate: bool) -> bool:
    """Whether the page can be taken apart by its separators, is whole, and (if asked) is valid UTF-8.

    length: bytes of its rows as the database counted them.
    """
    whole = len(block.data) == length + block.rows - 1
    return whole and block.grid.has_shape(rows=block.rows, width=width) and (not validate or _is_utf8(block.data))


def repair(cell: bytes) -> bytes:
    """U+FFFD for separators, and for bytes that are no valid UTF-8."""
    if not _is_utf8(cell):
        cell = _SURROGATE.sub(cells.REPLACEMENT, cell).decode(errors="replace").encode()
    return cell.replace(CELL, cells.REPLACEMENT).replace(ROW, cells.REPLACEMENT)


def finish(block: Block, *, finishers: Mapping[int, cells.Finisher], width: int) -> Block:
    """Bring the columns that SQL could not spell into their stated form."""
    if not finishers or not block.rows:
        return block
    values = block.data.replace(ROW, CELL).split(CELL)
    keys = values[::width]
    replaced = list(block.replaced)
    for at, finisher in finishers.items():
        given = values[at::width]
        values[at::width] = finished = [finisher(cell) for cell in given]
        if finisher is cells.finish_json:
            replaced += _surrogate_keys(keys, given, finished)
    data = ROW.join([CELL.join(values[at : at + width]) for at in range(0, len(values), width)])
    return Block(data, block.rows, block.last_key, tuple(dict.fromkeys(replaced)))


def _surrogate_keys(keys: list[bytes], given: list[bytes], finished: list[bytes]) -> list[str]:
    pairs = zip(keys, given, finished, strict=True)
    return [key.decode() for key, before, after in pairs if cells.lost_surrogates(before, after)]


def _ends_with(key: str, block: Block) -> bool:
    """Whether the last row is that of the page's last key: SQLite states no order for `group_concat`."""
    last_row = block.data[block.data.rfind(ROW) + 1 :]
    return last_row.partition(CELL)[0] == key.encode()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _statement(bounds: Bounds) -> AbstractContextManager[BaseDatabaseWrapper]:
    return guards.statement(limit_ms=conf().statement_timeout_ms, settled=bounds.settled)


def _sends_utf8(connection: BaseDatabaseWrapper) -> bool:
    """Whether the database itself lets no other bytes through: PostgreSQL does, unless it was told not to look."""
    if connection.vendor != "postgresql":
        return False
    encoding: str = connection.connection.info.parameter_status("server_encoding")
    return encoding != "SQL_ASCII"


def spelling_of(connection: BaseDatabaseWrapper, *, form: TimeForm, masked: frozenset[str]) -> cells.Spelling:
    """Of a session, under the settings in force."""
    return cells.Spelling(
        vendor=connection.vendor,
        form=form,
        zone=conf().business_zone,
        stored_zone=connection.timezone_name,
        masked=masked,
    )


def _fetch_postgresql(connection: BaseDatabaseWrapper, sql: str, parameters: list[Any]) -> Raw:
    """The driver's own bytes: nothing is decoded."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        result = cursor.pgresult
        data, rows, last, length = (result.get_value(0, at) for at in range(4))
    return Raw(bytes(data or b""), int(rows), (last or b"").decode(), int(length or 0))


def _fetch_sqlite(connection: BaseDatabaseWrapper, sql: str, parameters: list[Any]) -> Raw:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        data, rows, last, length = cursor.fetchone()
    return Raw(data or b"", rows, str(last), length or 0)


def _fetch_mysql(connection: BaseDatabaseWrapper, sql: str, parameters: list[Any]) -> Raw:
    """A row each. A row beyond `max_allowed_packet` is NULL: its length then does not agree."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows = cursor.fetchall()
    lines = [bytes(line or b"") for line, _ in rows]
    last = str(rows[-1][1]) if rows else ""
    return Raw(ROW.join(lines), len(rows), last, sum(map(len, lines)))


_FETCH = {"postgresql": _fetch_postgresql, "sqlite": _fetch_sqlite, "mysql": _fetch_mysql}
