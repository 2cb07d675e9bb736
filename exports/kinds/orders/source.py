"""The table, and querysets of it compiled once: the SQL that Django makes, and the places of its parameters.

To build and compile a queryset takes Django longer than a small page takes the database.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from exports.models import ReadOnlyModel


@dataclass(frozen=True, slots=True)
class Source:
    """The table: its model and its time field."""

    model: type[ReadOnlyModel]
    time_field: str

    @property
    def key(self) -> str:
        return self.model._meta.pk.name  # noqa: SLF001  # the documented API of models

    @property
    def table(self) -> str:
        return self.model._meta.db_table  # noqa: SLF001  # the documented API of models

    def field(self, name: str) -> Any:
        """The model's field of this name; None if it has none."""
        fields = {field.name: field for field in self.model._meta.fields}  # noqa: SLF001  # the documented API of models
        return fields.get(name)

    def rows(self, connection: BaseDatabaseWrapper) -> QuerySet[Any]:
        return self.model.objects.using(connection.alias)

    def window(self, connection: BaseDatabaseWrapper, *, start: Any, end: Any, last: Any) -> QuerySet[Any]:
        """Rows with start <= time < end whose key is at most `last`."""
        return self.rows(connection).filter(
            **{f"{self.time_field}__gte": start, f"{self.time_field}__lt": end, "pk__lte": last}
        )

    def time(self, connection: BaseDatabaseWrapper, moment: dt.datetime) -> Any:
        """A moment as a parameter of this database."""
        return self.field(self.time_field).get_db_prep_value(moment, connection)


@dataclass(frozen=True, slots=True)
class Marks:
    """Values that no row has, to be found again among the parameters. first: the key that a page starts at or behind."""

    start: dt.datetime
    end: dt.datetime
    first: int
    last: int

    @classmethod
    def of(cls, source: Source, connection: BaseDatabaseWrapper) -> "Marks":
        """The key marks are the largest keys that the column can hold: beyond them Django leaves a condition out."""
        kind = source.field(source.key).get_internal_type()
        _, largest = connection.ops.integer_field_range(kind)
        return cls(
            start=dt.datetime(9000, 1, 1, tzinfo=dt.UTC),
            end=dt.datetime(9000, 1, 2, tzinfo=dt.UTC),
            first=(largest or 1 << 62) - 1,
            last=largest or 1 << 62,
        )


@dataclass(frozen=True, slots=True)
class CompiledRows:
    """SQL of a queryset; `parameters` fills in what the marks stood for."""

    sql: str
    _given: tuple[Any, ...]
    _places: Mapping[str, int]

    def parameters(self, **values: Any) -> list[Any]:
        """values: start, end (see `Source.time`), last and, if the queryset has it, first."""
        filled = list(self._given)
        for name, value in values.items():
            filled[self._places[name]] = value
        return filled


def compiled(source: Source, connection: BaseDatabaseWrapper, rows: QuerySet[Any], marks: Marks) -> CompiledRows:
    """rows: filtered by the marks."""
    sql, given = rows.query.get_compiler(connection.alias).as_sql()
    sought = {
        "start": source.time(connection, marks.start),
        "end": source.time(connection, marks.end),
        "first": marks.first,
        "last": marks.last,
    }
    places = {name: given.index(mark) for name, mark in sought.items() if mark in given}
    return CompiledRows(sql, tuple(given), places)
