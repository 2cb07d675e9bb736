"""The cases of one cell or one file with their exact values: through the whole pipeline, both formats, every database."""

import csv
import dataclasses
import datetime as dt
import io
import json
import uuid
from decimal import Decimal
from typing import Any

import openpyxl
import pytest
from django.db import connections

from exports.contracts import Format, State, Warning
from exports.views import TaskView
from tests import pipeline, typed_orders
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc

pytestmark = pytest.mark.usefixtures("desk")

DAY = "2026-09-14"
ALL = frozenset({"sqlite", "postgresql", "mysql"})
NUL_OR_ZERO = ALL - {"postgresql"}
TIME, DATE = "yyyy-mm-dd hh:mm:ss", "yyyy-mm-dd"


@dataclasses.dataclass(frozen=True)
class Case:
    """What is stored in a column, what a CSV reader gets, and what a spreadsheet shows in which number format."""

    ids: str
    column: str
    stored: Any
    csv: str
    xlsx: Any
    format: str = "@"
    vendors: frozenset[str] = ALL


def moment(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


CASES = [
    Case("H025", "note", '5" screen, black', '5" screen, black', '5" screen, black'),
    Case("H026", "note", "a\nb\n\nc", "a\nb\n\nc", "a\nb\n\nc"),
    Case("H027", "note", "张三丰", "张三丰", "张三丰"),
    Case("H028", "discount", "1234.50", "1234.50", 1234.5, "0.00"),
    Case("H030 text", "note", "", "", None),
    Case("H030 money", "discount", None, "", None),
    Case("H031", "note", "路1\x00号", "路1\ufffd号", "路1\ufffd号", vendors=NUL_OR_ZERO),
    Case("H032", "note", "货到\x0b付款", "货到\ufffd付款", "货到\ufffd付款"),
    Case("H033", "note", "甲\r\n乙", "甲\r\n乙", "甲\n乙"),
    Case("H034", "note", "小林😀", "小林😀", "小林😀"),
    Case("H036 =", "note", "=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0", "=cmd|' /C calc'!A0"),
    Case("H036 @", "note", "@SUM(A1:A2)", "'@SUM(A1:A2)", "@SUM(A1:A2)"),
    Case("H036 +", "note", "+1+1", "'+1+1", "+1+1"),
    Case("H037", "note", " =1+1", "' =1+1", " =1+1"),
    Case("H038", "discount", "-42.00", "-42.00", -42, "0.00"),
    Case("H039 number", "note", "-0.02", "-0.02", "-0.02"),
    Case("H039 sum", "note", "-2+3", "'-2+3", "-2+3"),
    Case("H039 dashes", "note", "--note", "'--note", "--note"),
    Case("H040", "sku", "+8613900000000", "'+8613900000000", "+8613900000000"),
    Case("H041", "note", "=缺货", "'=缺货", "=缺货"),
    Case("H042", "sku", "2026091400012345678", "2026091400012345678", "2026091400012345678"),
    Case("H043 post code", "sku", "004500", "004500", "004500"),
    Case("H043 sku", "sku", "000123", "000123", "000123"),
    Case("H044 three", "quantity", 3, "3", 3, "0"),
    Case("H044 null", "quantity", None, "", None),
    Case("H044 five", "quantity", 5, "5", 5, "0"),
    Case("H045 zero", "discount", Decimal("0E-2"), "0.00", 0, "0.00"),
    Case("H045 hundred", "discount", Decimal("1E+2"), "100.00", 100, "0.00"),
    Case("H046 first", "discount", "10.10", "10.10", 10.1, "0.00"),
    Case("H046 second", "discount", "20.20", "20.20", 20.2, "0.00"),
    Case("H046 third", "discount", "30.30", "30.30", 30.3, "0.00"),
    Case("H047 price", "unit_price", "3.456789", "3.456789", 3.456789, "0.000000"),
    Case("H047 weight", "rate", "0.0010", "0.0010", 0.001, "0.0000"),
    Case("H047 amount", "fee", "-0.005", "-0.005", -0.005, "0.000"),
    Case("H048 NaN", "weight", float("nan"), "", None, vendors=ALL - {"mysql"}),
    Case("H048 infinity", "weight", float("inf"), "", None, vendors=ALL - {"mysql"}),
    Case(
        "H049",
        "extra",
        json.dumps({"gift": True, "名": "张"}),
        '{"gift": true, "名": "张"}',
        '{"gift": true, "名": "张"}',
    ),
    Case("H050 list", "extra", '[1,null,"a"]', '[1, null, "a"]', '[1, null, "a"]'),
    Case(
        "H050 uuid",
        "token",
        uuid.UUID("7d1c2f60-1b7a-4c55-9e0e-2a6f5b3c9d10"),
        *["7d1c2f60-1b7a-4c55-9e0e-2a6f5b3c9d10"] * 2,
    ),
    Case("H050 bytes", "payload", b"\x41\x42", "4142", "4142"),
    Case("H051 true", "is_gift", True, "true", True, "General"),
    Case("H051 false", "is_gift", False, "false", False, "General"),
    Case("H054", "note", "a" * 32_768, "a" * 32_768, "a" * 32_767),
    Case("H055", "url", "https://x.example/1", "https://x.example/1", "https://x.example/1"),
    Case(
        "H056",
        "paid_at",
        utc("2026-09-01 00:30:00"),
        "2026-09-01T08:30:00+08:00",
        moment("2026-09-01T08:30:00"),
        TIME,
    ),
    Case(
        "H057",
        "paid_at",
        utc("2026-08-31 16:00:00"),
        "2026-09-01T00:00:00+08:00",
        moment("2026-09-01T00:00:00"),
        TIME,
    ),
    Case("H058", "born", "1899-12-29", "1899-12-29", "1899-12-29"),
    Case("H058 last", "born", "1900-02-28", "1900-02-28", "1900-02-28"),
    Case("H058 first", "born", "1900-03-01", "1900-03-01", moment("1900-03-01"), DATE),
    Case(
        "H058 time",
        "paid_at",
        utc("1899-12-29 12:00:00"),
        "1899-12-29T20:05:43+08:05:43",
        "1899-12-29T20:05:43+08:05:43",
    ),
    Case("H059", "paid_at", "0000-00-00 00:00:00", "", None, vendors=NUL_OR_ZERO),
    Case("H059 infinity", "paid_at", "infinity", "", None, vendors=frozenset({"postgresql"})),
    Case("H059 day", "born", "0000-00-00", "", None, vendors=NUL_OR_ZERO),
]


SHOWN = tuple(column.name for column in typed_orders.TypedKind.columns)


def export(output: Format, day: str = DAY) -> tuple[bytes, TaskView]:
    """The file and the task of one day of the table."""
    with exports_settings(kinds=("tests.typed_orders.TypedKind",)):
        task_id = pipeline.submit(day, day, output=output, kind="typed")
        found = pipeline.work(task_id)
        assert found.state is State.SUCCEEDED, found
        return pipeline.read_file(task_id), found


def records(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))


def cells(data: bytes) -> list[tuple[Any, ...]]:
    """openpyxl's cells of the first sheet, row by row."""
    return list(openpyxl.load_workbook(io.BytesIO(data)).worksheets[0].iter_rows())


def stored(database: OrdersDatabase) -> list[Case]:
    """The cases that this database can hold, a row each, in this order."""
    typed_orders.create(database)
    held = [case for case in CASES if database.vendor in case.vendors]
    for number, case in enumerate(held, start=1):
        typed_orders.add(database, number, **{case.column: case.stored})
    return held


def test_csv_holds_the_exact_value_of_every_case(orders_db: OrdersDatabase) -> None:
    held = stored(orders_db)
    data, _ = export(Format.CSV)
    header, *rows = records(data)
    assert {case.ids: row[SHOWN.index(case.column)] for case, row in zip(held, rows, strict=True)} == {
        case.ids: case.csv for case in held
    }
    # H027, H029, H060
    assert data.startswith(b"\xef\xbb\xbf" + "号,下单时间,".encode())
    assert data.count(b"\xef\xbb\xbf") == 1
    assert {len(row) for row in rows} == {len(header)}


def test_xlsx_holds_the_exact_value_of_every_case(orders_db: OrdersDatabase) -> None:
    held = stored(orders_db)
    _, *rows = cells(export(Format.XLSX)[0])
    shown = {case.ids: row[SHOWN.index(case.column)] for case, row in zip(held, rows, strict=True)}
    assert {ids: cell.value for ids, cell in shown.items()} == {case.ids: case.xlsx for case in held}
    formats = {ids: cell.number_format for ids, cell in shown.items() if cell.value is not None}
    assert formats == {case.ids: case.format for case in held if case.xlsx is not None}
    types = {ids: cell.data_type for ids, cell in shown.items() if cell.value is not None}
    assert types == {case.ids: TYPES[type(case.xlsx)] for case in held if case.xlsx is not None}


TYPES = {str: "s", int: "n", float: "n", bool: "b", dt.datetime: "d"}


# --- warnings --------------------------------------------------------------------------------


@pytest.mark.parametrize("output", list(Format))
def test_replaced_and_cut_cells_are_counted_and_the_first_rows_named(orders_db: OrdersDatabase, output: Format) -> None:
    """H031, H032, H054. Two shards; on the first page the kind replaces separators, the format the rest."""
    typed_orders.create(orders_db)
    for number in range(1, 9):
        typed_orders.add(orders_db, number, note="a\x0bb", sku="a\x1eb" if number % 2 else "fine")
    typed_orders.add(orders_db, 9, note="a" * 32_768, created_at=utc("2026-09-15 04:00:00"))
    typed_orders.add(orders_db, 10, note="\x0b" * 32_768, created_at=utc("2026-09-15 04:00:00"))
    typed_orders.add(orders_db, 11, note="kept: \ufffd", created_at=utc("2026-09-15 04:00:00"))
    with exports_settings(kinds=("tests.typed_orders.TypedKind",), page_rows=8, page_rows_min=8):
        task_id = pipeline.submit(DAY, "2026-09-15", output=output, kind="typed")
        found = pipeline.work(task_id)
    assert (found.state, found.processed) == (State.SUCCEEDED, 11)
    replaced = Warning("replaced_characters", count=13, keys=("1", "3", "5", "7", "2"))
    cut = Warning("cut_cells", count=2, keys=("9", "10"))
    assert found.warnings == ((replaced,) if output is Format.CSV else (cut, replaced))


@pytest.mark.parametrize("output", list(Format))
def test_a_clean_export_has_no_warning(orders_db: OrdersDatabase, output: Format) -> None:
    typed_orders.create(orders_db)
    typed_orders.add(orders_db, 1, note="a\tb\r\nc \ufffd \ufeff \x7f", extra='"\\ufffd"')
    assert export(output)[1].warnings == ()


# --- bytes that are no text, numbers that are none, times out of range ------------------------------


def note_of(data: bytes, output: Format) -> list[Any]:
    at = SHOWN.index("note")
    if output is Format.CSV:
        return [row[at] for row in records(data)[1:]]
    return [row[at].value for row in cells(data)[1:]]


@pytest.mark.parametrize("output", list(Format))
def test_bytes_that_are_no_text_are_replaced_and_told(sqlite_orders: OrdersDatabase, output: Format) -> None:
    """H031, H035. SQLite keeps any bytes as text."""
    typed_orders.create(sqlite_orders)
    for number, given in enumerate(("6F6BFF21", "E4B8", "EDA0BD", "6F6B"), start=1):
        typed_orders.add(sqlite_orders, number)
        sqlite_orders.execute(f"UPDATE typed_orders SET note = CAST(x'{given}' AS TEXT) WHERE id = {number}")
    data, found = export(output)
    assert note_of(data, output) == ["ok\ufffd!", "\ufffd", "\ufffd", "ok"]
    assert found.warnings == (Warning("replaced_characters", count=3, keys=("1", "2", "3")),)


@pytest.mark.parametrize("output", list(Format))
def test_what_only_postgresql_can_store_is_empty_or_iso_text(postgres_orders: OrdersDatabase, output: Format) -> None:
    """H048, H058, H059: numbers that are none, infinite times, and years that a spreadsheet has not."""
    typed_orders.create(postgres_orders)
    given = {"unit_price": "NaN", "discount": "NaN", "weight": "NaN", "born": "infinity", "paid_at": "-infinity"}
    typed_orders.add(postgres_orders, 1, **given)
    typed_orders.add(postgres_orders, 2, born="10000-01-01", paid_at="10000-01-01 00:00:00+00")
    typed_orders.add(postgres_orders, 3, born="0001-01-01", paid_at="0001-01-01 00:00:00+00", discount="1.00")
    typed_orders.add(postgres_orders, 4, born="0044-03-15 BC", paid_at="0044-03-15 12:00:00+00 BC")
    typed_orders.add(postgres_orders, 5, born="0001-12-31 BC", paid_at="0001-12-31 12:00:00+00 BC")
    data, found = export(output)
    rows = records(data) if output is Format.CSV else [[cell.value or "" for cell in row] for row in cells(data)]
    places = [SHOWN.index(name) for name in ("paid_at", "born", *given)]
    assert [[row[at] for at in places[:2]] for row in rows[1:]] == [
        ["", ""],
        ["10000-01-01T08:00:00+08:00", "10000-01-01"],
        ["0001-01-01T08:05:43+08:05:43", "0001-01-01"],
        ["-0043-03-15T20:05:43+08:05:43", "-0043-03-15"],
        ["0000-12-31T20:05:43+08:05:43", "0000-12-31"],
    ]
    assert [rows[1][at] for at in places] == [""] * len(places)
    assert rows[3][SHOWN.index("discount")] in ("1.00", 1)
    assert found.warnings == ()


# --- zones -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "stored", "shown"),
    [
        ("America/Sao_Paulo", "2026-09-05 01:30:00", ["2026-09-04T22:30:00-03:00"]),  # H021
        ("Asia/Kolkata", "2026-08-31 18:30:00", ["2026-09-01T00:00:00+05:30"]),  # H019
        ("Asia/Kathmandu", "2026-08-31 18:15:00.25", ["2026-09-01T00:00:00.25+05:45"]),
        (
            "America/New_York",  # H023
            "2026-11-01 05:30:00, 2026-11-01 06:30:00, 2026-11-02 04:30:00",
            ["2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T23:30:00-05:00"],
        ),
        (
            "America/St_Johns",  # a half-hour zone with summer time
            "2026-11-01 03:29:59, 2026-11-01 04:29:59, 2026-11-01 04:30:00, 2026-11-01 05:30:00.5",
            [
                "2026-11-01T00:59:59-02:30",
                "2026-11-01T01:59:59-02:30",
                "2026-11-01T01:00:00-03:30",
                "2026-11-01T02:00:00.5-03:30",
            ],
        ),
        (
            "Australia/Lord_Howe",  # summer time of half an hour
            "2026-04-04 14:45:00, 2026-04-04 15:15:00, 2026-04-04 16:00:00",
            ["2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30", "2026-04-05T02:30:00+10:30"],
        ),
    ],
)
def test_both_formats_show_the_wall_clock_of_the_zone(
    orders_db: OrdersDatabase, zone: str, stored: str, shown: list[str]
) -> None:
    typed_orders.create(orders_db)
    for number, at in enumerate(stored.split(", "), start=1):
        typed_orders.add(orders_db, number, created_at=utc(at), paid_at=utc(at))
    day = shown[0][:10]
    with exports_settings(business_zone=zone):
        connections[orders_db.alias].close()  # a session takes the zone when it opens
        assert [row[1:3] for row in records(export(Format.CSV, day)[0])[1:]] == [[text, text] for text in shown]
        rows = cells(export(Format.XLSX, day)[0])[1:]
    connections[orders_db.alias].close()
    walls = [moment(text).replace(tzinfo=None) for text in shown]
    assert [[cell.value for cell in row[1:3]] for row in rows] == [[wall, wall] for wall in walls]
