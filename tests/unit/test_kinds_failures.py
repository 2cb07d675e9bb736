"""Driver errors become codes, and nothing else passes."""

from typing import Any

import pytest
from django.db import DataError, Error, InterfaceError, OperationalError

from exports.errors import PageTooLarge, SourceUnavailable, StepBroken
from exports.kinds.orders.failures import translate


class Cause(Exception):  # stands for a driver's error
    sqlstate: str | None = None
    sqlite_errorcode: int | None = None


def error(
    kind: type[Error] = OperationalError, *args: Any, sqlstate: str | None = None, sqlite: int | None = None
) -> Error:
    made = kind(*args)
    cause = Cause()
    cause.sqlstate, cause.sqlite_errorcode = sqlstate, sqlite
    made.__cause__ = cause
    return made


@pytest.mark.parametrize(
    ("vendor", "given", "code"),
    [
        ("postgresql", error(sqlstate="57014"), "database_timeout"),
        ("postgresql", error(sqlstate="40001"), "replica_conflict"),
        ("postgresql", error(sqlstate="40P01"), "replica_conflict"),
        ("postgresql", error(sqlstate="57P01"), "database_connection"),
        ("postgresql", error(sqlstate="08006"), "database_connection"),
        ("postgresql", error(sqlstate="53300"), "database_connection"),
        ("postgresql", error(), "database_connection"),
        ("postgresql", error(InterfaceError), "database_connection"),
        ("mysql", error(OperationalError, 1969, "x"), "database_timeout"),
        ("mysql", error(OperationalError, 3024, "x"), "database_timeout"),
        ("mysql", error(OperationalError, 1205, "x"), "database_timeout"),
        ("mysql", error(OperationalError, 2013, "x"), "database_connection"),
        ("mysql", error(InterfaceError, 0, ""), "database_connection"),
        ("sqlite", error(sqlite=9), "database_timeout"),
        ("sqlite", error(sqlite=261), "database_timeout"),
        ("sqlite", error(sqlite=14), "database_connection"),
    ],
)
def test_what_passes_by_itself_is_tried_again(vendor: str, given: Error, code: str) -> None:
    failure = translate(given, vendor=vendor)
    assert isinstance(failure, SourceUnavailable)
    assert failure.code == code


@pytest.mark.parametrize(
    ("vendor", "given"),
    [
        ("postgresql", error(sqlstate="53200")),
        ("postgresql", error(sqlstate="54000")),
        ("mysql", error(OperationalError, 1038, "x")),
        ("sqlite", error(DataError, sqlite=18)),
    ],
)
def test_what_does_not_fit_asks_for_a_smaller_page(vendor: str, given: Error) -> None:
    assert isinstance(translate(given, vendor=vendor), PageTooLarge)


def test_anything_else_ends_the_step_with_a_code_and_no_text() -> None:
    failure = translate(error(DataError, "invalid input: secret", sqlstate="22P02"), vendor="postgresql")
    assert isinstance(failure, StepBroken)
    assert str(failure) == "DataError 22P02"
