"""Rows of every type, put into each database, exported by the whole pipeline, and read back by other programs.

Hypothesis makes the rows, which go through as one batch: one example an export would take minutes. A cell that comes
back wrong is named with what was stored, which is as small as a failing example could be.

What the readers themselves cannot keep:

* openpyxl and calamine turn a serial into a time and round it, each in its own way: within a millisecond.
* openpyxl leaves `_x005F_` as it stands in the file.
* LibreOffice saves times in whole seconds, shows every line break in a cell as LF, drops the tabs of a cell that
  has several lines, and saves numbers with 20 decimals at most.
"""

import csv
import dataclasses
import datetime as dt
import io
import json
import math
import re
import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import python_calamine
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from exports.contracts import CellType, Column, Format
from tests import libreoffice, pipeline, typed_orders
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.unit import formats_reference as reference

pytestmark = pytest.mark.usefixtures("desk")

ROWS = 400
DAY = "2026-09-14"
ZONE = zoneinfo.ZoneInfo("Asia/Shanghai")
COLUMNS = typed_orders.TypedKind.columns
FIRST_SERIAL = dt.datetime.fromisoformat("1900-03-01")

AWKWARD = st.sampled_from(
    [
        *(
            "=",
            "-",
            "+",
            "@",
            "＝",
            "－",
            "＋",
            "＠",
            " ",
            "\t",
            "\r",
            "\n",
            "\r\n",
            '"',
            "'",
            ",",
            ";",
            "|",
            "\\",
            "\\N",
        ),
        *("&", "<", ">", "]]>", "</row>", "_x0041_", "_x", "\x00", "\x01", "\x0b", "\x1e", "\x1f", "\x7f", "\x85"),
        *(
            "\xa0",
            "\u200b",
            "\u2028",
            "\u3000",
            "\ufeff",
            "\ufffd",
            "\ufffe",
            "\uffff",
            "😀",
            "张",
            "é",
            "%s",
            "%",
            "{c}",
        ),
        *("NaN", "infinity", "NULL", "1", "-1", ".5", "1e5", "007", "TRUE", "2026-09-01", "#N/A", "0x1F"),
    ]
)
TEXTS = st.one_of(
    st.lists(AWKWARD, max_size=6).map("".join), st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
KEYS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=5)
# jsonb keeps numbers as decimals and so spells a large float as a whole number.
JSON_NUMBERS = st.one_of(st.integers(-(10**30), 10**30), st.floats(-1e15, 1e15).filter(lambda number: number % 1 != 0))
DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), JSON_NUMBERS, KEYS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=5,
)
LAST_TIME = dt.datetime.fromisoformat("9999-12-31T15:59:59.999999")  # in the business zone the year ends here
TIMES = st.one_of(
    st.datetimes(max_value=LAST_TIME),
    st.datetimes(dt.datetime.fromisoformat("1899-12-01"), dt.datetime.fromisoformat("1900-04-01")),
    st.datetimes(dt.datetime.fromisoformat("1970-01-01"), dt.datetime.fromisoformat("2038-01-01")),
)
DATES = st.one_of(st.dates(), st.dates(dt.date(1899, 12, 1), dt.date(1900, 4, 1)))
FLOATS = st.one_of(st.floats(), st.floats(-1e6, 1e6), st.integers(-(10**17), 10**17).map(float))


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    """Extreme and small ones, with the scale or without."""
    units = st.one_of(st.integers(-(10**digits) + 1, 10**digits - 1), st.integers(-(10**4), 10**4))
    return units.map(lambda number: Decimal(number).scaleb(-scale))


# SQLite keeps a decimal as a float, which is exact to 15 digits.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "paid_at": TIMES.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    "unit_price": decimals(15, 6),
    "discount": decimals(12, 2),
    "rate": decimals(12, 4),
    "fee": decimals(12, 3),
    "weight": FLOATS,
    "is_gift": st.booleans(),
    "born": DATES,
    "extra": DOCUMENTS,
    "token": st.uuids(version=4),  # MariaDB takes no UUID of an unknown version
    "payload": st.binary(max_size=12),
    "url": TEXTS.map("https://x.example/".__add__),
    "note": TEXTS,
    "sku": st.one_of(TEXTS, st.integers(0, 10**20).map(str)),
    "quantity": st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(10**16), 10**16), st.integers(-9, 9)),
    "status": st.one_of(st.sampled_from([*typed_orders.STATUSES, "PAID", "已付款"]), TEXTS),
}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Each column NULL in about one row of eight."""
    made: list[dict[str, Any]] = []

    @settings(
        max_examples=ROWS,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.fixed_dictionaries({name: st.one_of(*[values] * 7, st.none()) for name, values in VALUES.items()}))
    def collect(row: dict[str, Any]) -> None:
        made.append(row)

    collect()
    return made


@dataclasses.dataclass(frozen=True)
class Cell:
    """One cell as it was stored, and what its column must show for it. text: the form of `exports.contracts.CellType`."""

    row: int
    column: Column
    stored: Any
    text: str

    @property
    def csv(self) -> str:
        return reference.csv_value(self.text, self.column.type)

    @property
    def xlsx(self) -> Any:
        """A time or date as a time; text, number, truth or None as such."""
        if self.column.type is CellType.DATETIME and self.text:
            wall = self.stored.astimezone(ZONE).replace(tzinfo=None)
            return wall if wall >= FIRST_SERIAL else reference.iso(self.text)
        if self.column.type is CellType.DATE and self.text:
            day = dt.datetime.combine(self.stored, dt.time())
            return day if day >= FIRST_SERIAL else self.text
        return reference.xlsx_value(self.text, self.column.type)


def store(database: OrdersDatabase, rows: Sequence[dict[str, Any]]) -> list[list[Cell]]:
    """Put the rows into the database; what the file must show."""
    typed_orders.create(database)
    kept = []
    for number, row in enumerate(rows, start=1):
        held = {name: holdable(value, database.vendor) for name, value in row.items()}
        extra = None if held["extra"] is None else json.dumps(held["extra"])
        typed_orders.add(database, number, **{**held, "extra": extra})
        held |= {"id": number, "created_at": dt.datetime.fromisoformat("2026-09-14T04:00:00+00:00")}
        kept.append([Cell(number, column, held[column.name], text_of(column, held[column.name])) for column in COLUMNS])
    return kept


def holdable(value: Any, vendor: str) -> Any:
    """What of a value this database can hold at all."""
    if isinstance(value, str) and vendor == "postgresql":
        return value.replace("\x00", "")
    if isinstance(value, float) and vendor == "mysql" and not math.isfinite(value):
        return None
    return value


def text_of(column: Column, value: Any) -> str:
    """The stated text of a value, made from the value itself and as plainly as can be."""
    if value is None:
        return ""
    if column.type in (CellType.DECIMAL, CellType.MONEY):
        return f"{value:.{column.scale}f}"
    return TEXTS_OF.get(column.type, str)(value)


def time_text(moment: dt.datetime) -> str:
    text = moment.astimezone(ZONE).isoformat(" ", "microseconds")
    wall, fraction, offset = text[:19], text[19:26], text[26:]
    return wall + fraction.rstrip("0").rstrip(".") + offset


TEXTS_OF: dict[CellType, Callable[[Any], str]] = {
    CellType.JSON: lambda value: json.dumps(value, ensure_ascii=False, sort_keys=True),
    CellType.FLOAT: lambda value: repr(value + 0.0).removesuffix(".0") if math.isfinite(value) else "",
    CellType.BOOLEAN: lambda value: "true" if value else "false",
    CellType.DATETIME: time_text,
    CellType.BYTES: bytes.hex,
    CellType.ENUM: lambda value: typed_orders.STATUSES.get(value, (value, ""))[0],
}


@dataclasses.dataclass(frozen=True)
class Reader:
    """A program that reads the file. rounding, least: of times and of numbers. settled: what it makes of a text."""

    name: str
    rounding: dt.timedelta = dt.timedelta(milliseconds=1)
    least: float = 0.0
    settled: Callable[[str], str] = str

    def assert_shows(self, cells: Sequence[Sequence[Cell]], seen: Sequence[Sequence[Any]], *, output: Format) -> None:
        """Every cell, and no other; the smallest of those that differ are shown."""
        assert len(seen) == len(cells), self.name
        wrong = []
        for wanted, shown in zip(cells, seen, strict=True):
            for cell, value in zip(wanted, [*shown, *[None] * (len(wanted) - len(shown))], strict=True):
                expected = cell.csv if output is Format.CSV else cell.xlsx
                if not self._alike(value, expected):
                    wrong.append((cell.column.name, cell.stored, expected, value))
        wrong.sort(key=lambda entry: len(repr(entry)))
        assert not wrong, f"{self.name}: {len(wrong)} cells differ, such as {wrong[:5]}"

    def _alike(self, shown: Any, expected: Any) -> bool:
        if expected in (None, ""):
            return shown in (None, "")
        if isinstance(shown, dt.date) and not isinstance(shown, dt.datetime):
            shown = dt.datetime.combine(shown, dt.time())
        if isinstance(expected, dt.datetime):
            return isinstance(shown, dt.datetime) and abs(shown - expected) <= self.rounding
        if isinstance(expected, float):
            number = isinstance(shown, int | float) and not isinstance(shown, bool)
            return number and math.isclose(shown, expected, rel_tol=0, abs_tol=self.least)
        if isinstance(expected, str):
            return isinstance(shown, str) and self.settled(shown) == self.settled(expected)
        return type(shown) is type(expected) and bool(shown == expected)


def without_marks(text: str) -> str:
    return text.replace("_x005F_", "_")


def with_plain_lines(text: str) -> str:
    text = re.sub(r"\r\n|\n\r|\r", "\n", text)
    return text.replace("\t", "") if "\n" in text else text


PLAIN = Reader("csv")
OPENPYXL = Reader("openpyxl", settled=without_marks)
CALAMINE = Reader("calamine")
LIBREOFFICE = Reader("LibreOffice", rounding=dt.timedelta(seconds=1), least=1e-19, settled=with_plain_lines)


def export(output: Format) -> bytes:
    """In pages and sheets of sizes that do not fit each other."""
    with exports_settings(kinds=("tests.typed_orders.TypedKind",), page_rows=97, page_rows_min=50, sheet_rows=151):
        return pipeline.export(DAY, DAY, output=output, kind="typed")


def below_headers(sheets: Iterable[Sequence[Sequence[Any]]]) -> list[Sequence[Any]]:
    """The data rows of all sheets, each of which begins with the same header."""
    found = []
    for header, *data in sheets:
        assert list(header) == [column.zh for column in COLUMNS]
        found += data
    return found


def test_csv_holds_what_was_stored(orders_db: OrdersDatabase, rows: list[dict[str, Any]]) -> None:
    cells = store(orders_db, rows)
    text = export(Format.CSV).decode("utf-8-sig")
    records = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    PLAIN.assert_shows(cells, below_headers([records]), output=Format.CSV)


def test_xlsx_holds_what_was_stored(orders_db: OrdersDatabase, rows: list[dict[str, Any]]) -> None:
    cells = store(orders_db, rows)
    data = export(Format.XLSX)
    book = openpyxl.load_workbook(io.BytesIO(data))
    sheets: list[list[Any]] = [list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets]
    assert [len(sheet) for sheet in sheets] == [151, 151, 101]
    OPENPYXL.assert_shows(cells, below_headers(sheets), output=Format.XLSX)
    other = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
    sheets = [other.get_sheet_by_index(place).to_python() for place in range(len(other.sheet_names))]
    CALAMINE.assert_shows(cells, below_headers(sheets), output=Format.XLSX)


@pytest.mark.libreoffice
@pytest.mark.parametrize("output", list(Format))
def test_libreoffice_sees_what_was_stored(
    postgres_orders: OrdersDatabase, rows: list[dict[str, Any]], tmp_path: Path, output: Format
) -> None:
    cells = store(postgres_orders, rows)
    path = tmp_path / f"typed.{output}"
    path.write_bytes(export(output))
    sheets = libreoffice.sheets(path, text_columns=len(COLUMNS) if output is Format.CSV else 0)
    LIBREOFFICE.assert_shows(cells, below_headers(sheets), output=output)
