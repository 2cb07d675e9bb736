"""The table, and querysets of it compiled once: the SQL that Django makes, and the places of its parameters.

To build and compile a queryset takes Django longer than a small page takes the database.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import IntegerField, Q, QuerySet

from exports.models import ReadOnlyModel


@dataclass(frozen=True, slots=True)
class Source:
    """The table: its model and its time field. key_rises: whether its keys rise with that time."""

    model: type[ReadOnlyModel]
    time_field: str
    key_rises: bool

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

    def within(self, marks: "Marks") -> Q:
        """Rows with start <= time < end."""
        return Q((f"{self.time_field}__gte", marks.start), (f"{self.time_field}__lt", marks.end))

    def time(self, connection: BaseDatabaseWrapper, moment: dt.datetime) -> Any:
        """A moment as a parameter of this database."""
        return self.field(self.time_field).get_db_prep_value(moment, connection)

    def key_value(self, connection: BaseDatabaseWrapper, text: str) -> Any:
        """A key's text as a parameter of this database."""
        key = self.field(self.key)
        return key.get_db_prep_value(key.to_python(text), connection)


@dataclass(frozen=True, slots=True)
class Marks:
    """Values that no row has, to be found again among the parameters. first: the key that a page starts at or behind."""

    start: dt.datetime
    end: dt.datetime
    first: Any
    last: Any

    @classmethod
    def of(cls, source: Source, connection: BaseDatabaseWrapper) -> "Marks":
        first, last = _marked_keys(source.field(source.key), connection)
        return cls(
            start=dt.datetime(9000, 1, 1, tzinfo=dt.UTC),
            end=dt.datetime(9000, 1, 2, tzinfo=dt.UTC),
            first=first,
            last=last,
        )


def _marked_keys(key: Any, connection: BaseDatabaseWrapper) -> tuple[Any, Any]:
    """Of whole numbers the largest that the column can hold: beyond them Django leaves a condition out."""
    if not isinstance(key, IntegerField):
        first, last = (key.to_python(f"ffffffff-ffff-4fff-bfff-fffffffffff{end}") for end in (1, 2))
        return first, last
    _, largest = connection.ops.integer_field_range(key.get_internal_type())
    return (largest or 1 << 62) - 1, largest or 1 << 62


@dataclass(frozen=True, slots=True)
class CompiledRows:
    """SQL of a queryset; `parameters` fills in what the marks stood for."""

    sql: str
    _given: tuple[Any, ...]
    _places: Mapping[str, tuple[int, ...]]

    def parameters(self, **values: Any) -> list[Any]:
        """values: for each of the marks start, end, first and last that the queryset has."""
        filled = list(self._given)
        for name, value in values.items():
            for at in self._places[name]:
                filled[at] = value
        return filled


def compiled(source: Source, connection: BaseDatabaseWrapper, rows: QuerySet[Any], marks: Marks) -> CompiledRows:
    """rows: filtered by the marks."""
    sql, given = rows.query.get_compiler(connection.alias).as_sql()
    key = source.field(source.key)
    sought = {
        "start": source.time(connection, marks.start),
        "end": source.time(connection, marks.end),
        "first": key.get_db_prep_value(marks.first, connection),
        "last": key.get_db_prep_value(marks.last, connection),
    }
    places = {name: tuple(at for at, value in enumerate(given) if value == mark) for name, mark in sought.items()}
    return CompiledRows(sql, tuple(given), places)
