"""How the rows of a table are ordered and bounded, chosen once by whether its keys rise with time.

* `ByKey`: they do. The key alone is the order, and the largest key at plan leaves out every later row.
* `ByTime`: they do not (UUIDs, codes, random numbers). Rows stand by time, those of one time by key.

A place is one text that tells where a row stands in that order: cursors are places, and so are a day's ends.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Max, Q

from exports.kinds.orders import cells
from exports.kinds.orders.bounds import Bounds
from exports.kinds.orders.source import Marks, Source

CHECKSUM_MODULUS = 1_000_003
"""Keys are summed modulo this prime, so that the sum of millions of large keys cannot overflow."""


@dataclass(frozen=True, slots=True)
class PlaceSql:
    """Parts of a page's SQL. `read_rows` are its rows, each beside its line of text.

    place, order: a row's place, and the order of the rows, where each is a row of the answer. carried, joined, last:
    what the lines carry along, their order, and the place of the last, where the database joins them to one value.
    """

    place: str
    order: str
    carried: str
    joined: str
    last: str


class Ordering(Protocol):
    fields: tuple[str, ...]
    """Names of the fields that a place is made of."""
    order_by: tuple[str, ...]
    index: tuple[str, ...]
    """Fields of the index that pages need beside that of the key."""
    copies: int
    """How often the rows stand in the SQL of a count, each time with their parameters."""

    def limit(self, connection: BaseDatabaseWrapper) -> str:
        """What bounds the keys of an export that is planned now; "" where there is no row."""

    def belonging(self, marks: Marks) -> Q:
        """The rows of a day."""

    def belonging_values(self, limit: str) -> dict[str, Any]:
        """Parameters in place of the marks of `belonging`, beside start and end."""

    def page(self, marks: Marks, *, first: bool) -> Q:
        """The rows of a day behind a place, up to its last; first: the place itself belongs to them."""

    def page_values(self, connection: BaseDatabaseWrapper, bounds: Bounds, *, place: str) -> dict[str, Any]:
        """Parameters in place of the marks of `page`."""

    def page_sql(self, connection: BaseDatabaseWrapper) -> PlaceSql:
        """How a page's rows are ordered, and its last place told."""

    def count_sql(self, connection: BaseDatabaseWrapper, rows: str) -> str:
        """How many rows, the places of the first and the last, and a sum over the keys that no order changes."""

    def key(self, place: str) -> str:
        """The key's text."""


def of(source: Source) -> Ordering:
    return ByKey(source) if source.key_rises else ByTime(source)


_COUNT_BY_KEY = "SELECT count(*), min({key}), max({key}), sum({key} %% {modulus}) FROM ({rows}) AS day_rows"


class ByKey:
    """A place is the key's text."""

    order_by: tuple[str, ...] = ("pk",)
    index: tuple[str, ...] = ()
    copies = 1

    def __init__(self, source: Source) -> None:
        self._source = source
        self.fields: tuple[str, ...] = (source.key,)

    def limit(self, connection: BaseDatabaseWrapper) -> str:
        """The largest key."""
        largest = self._source.rows(connection).aggregate(largest=Max("pk"))["largest"]
        return "" if largest is None else str(largest)

    def belonging(self, marks: Marks) -> Q:
        return self._source.within(marks) & Q(pk__lte=marks.last)

    def belonging_values(self, limit: str) -> dict[str, Any]:
        return {"last": int(limit)}

    def page(self, marks: Marks, *, first: bool) -> Q:
        return self.belonging(marks) & Q(**{"pk__gte" if first else "pk__gt": marks.first})

    def page_values(self, connection: BaseDatabaseWrapper, bounds: Bounds, *, place: str) -> dict[str, Any]:
        times = {name: self._source.time(connection, getattr(bounds, name)) for name in ("start", "end")}
        return {**times, "first": int(place), "last": int(bounds.last)}

    def page_sql(self, connection: BaseDatabaseWrapper) -> PlaceSql:
        key = f"{connection.ops.quote_name(self._source.key)} AS k"
        return PlaceSql(place=key, order="k", carried=key, joined="k", last="max(k)")

    def count_sql(self, connection: BaseDatabaseWrapper, rows: str) -> str:
        key = connection.ops.quote_name(self._source.key)
        return _COUNT_BY_KEY.format(key=key, modulus=CHECKSUM_MODULUS, rows=rows)

    def key(self, place: str) -> str:
        return place


ANY_KEY = "*"
_BETWEEN = " @ "
_PLACES = {
    "postgresql": "concat({key}, '{between}', {time})",
    "sqlite": "{key} || '{between}' || {time}",
    "mysql": "concat(CONVERT({key} USING utf8mb4), '{between}', {time})",
}
# array_agg in the order of the lines, which are sorted once for both; MariaDB and MySQL give a row each.
_LASTS = {
    "postgresql": "(array_agg(place ORDER BY t, k))[count(*)::integer]",
    "sqlite": "(SELECT place FROM page ORDER BY t DESC, k DESC LIMIT 1)",
    "mysql": "",
}
_CHECKSUMS = {
    "postgresql": f"hashtextextended({{key}}::text, 0) %% {CHECKSUM_MODULUS}",
    "sqlite": "export_crc32({key})",
    "mysql": "crc32({key})",
}
_COUNT_BY_TIME = "SELECT count(*), ({first}), ({last}), sum({checksum}) FROM ({rows}) AS day_rows"
_FIRST_PLACE = "SELECT {place} FROM ({rows}) AS ordered_rows ORDER BY {time} {way}, {key} {way} LIMIT 1"


class ByTime:
    """A place is the key as its cell shows it, and the time as the database writes it, to its last digit.

    The time goes back to the database as that text: no type of Python's stands between two comparisons.
    """

    copies = 3

    def __init__(self, source: Source) -> None:
        self._source = source
        self.fields: tuple[str, ...] = (source.time_field, source.key)
        self.order_by: tuple[str, ...] = (source.time_field, "pk")
        self.index: tuple[str, ...] = self.fields

    def limit(self, connection: BaseDatabaseWrapper) -> str:
        return ANY_KEY

    def belonging(self, marks: Marks) -> Q:
        return self._source.within(marks)

    def belonging_values(self, limit: str) -> dict[str, Any]:
        return {}

    def page(self, marks: Marks, *, first: bool) -> Q:
        """Not as a comparison of pairs: MySQL reads no range of an index for one."""
        time = self._source.time_field
        behind = Q(**{f"{time}__gt": marks.start}) | Q(**{"pk__gte" if first else "pk__gt": marks.first})
        up_to = Q(**{f"{time}__lt": marks.end}) | Q(pk__lte=marks.last)
        return Q(**{f"{time}__gte": marks.start, f"{time}__lte": marks.end}) & behind & up_to

    def page_values(self, connection: BaseDatabaseWrapper, bounds: Bounds, *, place: str) -> dict[str, Any]:
        first, start = self._parsed(connection, place)
        last, end = self._parsed(connection, bounds.last)
        return {"start": start, "end": end, "first": first, "last": last}

    def _parsed(self, connection: BaseDatabaseWrapper, place: str) -> tuple[Any, str]:
        key, _, time = place.rpartition(_BETWEEN)
        return self._source.key_value(connection, key), time

    def page_sql(self, connection: BaseDatabaseWrapper) -> PlaceSql:
        time, key = map(connection.ops.quote_name, self.fields)
        place = f"{self._place(connection)} AS place"
        return PlaceSql(
            place=place,
            order=f"read_rows.{time}, read_rows.{key}",
            carried=f"{place}, {time} AS t, {key} AS k",
            joined="t, k",
            last=_LASTS[connection.vendor],
        )

    def count_sql(self, connection: BaseDatabaseWrapper, rows: str) -> str:
        time, key = map(connection.ops.quote_name, self.fields)
        parts = {"place": self._place(connection), "rows": rows, "time": time, "key": key}
        first, last = (_FIRST_PLACE.format(**parts, way=way) for way in ("ASC", "DESC"))
        checksum = _CHECKSUMS[connection.vendor].format(key=key)
        return _COUNT_BY_TIME.format(first=first, last=last, checksum=checksum, rows=rows)

    def _place(self, connection: BaseDatabaseWrapper) -> str:
        time, key = map(connection.ops.quote_name, self.fields)
        uuid = isinstance(self._source.field(self._source.key), models.UUIDField)
        text = cells.key_sql(key, vendor=connection.vendor, uuid=uuid)
        return _PLACES[connection.vendor].format(key=text, time=time, between=_BETWEEN)

    def key(self, place: str) -> str:
        return place.rpartition(_BETWEEN)[0]
