"""The bulk formats against a cell-by-cell reference, over all of Unicode and all types."""

import csv
import io
import random
import re

import openpyxl
from hypothesis import given, settings
from hypothesis import strategies as st

from exports.contracts import CellType, Format
from tests.unit import formats_reference as reference
from tests.unit.formats_files import Exported, columns, specification, values_by_each_reader

# Blocks hold no separator in a cell, and no unpaired surrogate: the kind has replaced them.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x1e\x1f")
AWKWARD = st.sampled_from(
    [
        *("=", "-", "+", "@", "＝", "－", " ", "\t", "\r", "\n", "\r\n", '"', ",", ";", "&", "<", ">", "\x00", "\x0b"),
        *("\ufffe", "\uffff", "\ufeff", "\u3000", "\xa0", "\u200b", "\ufffd", "\x7f", "\x85", "_x0041_", "_x", "-1"),
        *("1", ".5", "😀", "张", "'", "]]>", "</row>"),
    ]
)
TEXTS = st.one_of(st.lists(AWKWARD, max_size=6).map("".join), st.text(CHARACTERS, max_size=12))
NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.integers(-(10**19), 10**19))
OFFSETS = st.sampled_from(["+08", "-04", "-05", "+05:30", "+00", "+08:05:43"])
TIMES = st.builds(
    lambda moment, fraction, offset: moment.strftime("%Y-%m-%d %H:%M:%S") + fraction + offset,
    st.datetimes(),
    st.sampled_from(["", ".1", ".123", ".000001"]),
    OFFSETS,
).map(lambda text: text.zfill(len("2026-09-01 08:30:00")))
VALUES = {
    CellType.INTEGER: NUMBERS.map(str),
    CellType.DECIMAL: st.decimals(allow_nan=False, allow_infinity=False, places=4).map("{:f}".format),
    CellType.MONEY: st.decimals(-(10**10), 10**10, places=2).map("{:f}".format),
    CellType.FLOAT: st.floats(allow_nan=False, allow_infinity=False).map(repr),
    CellType.BOOLEAN: st.sampled_from(["true", "false"]),
    CellType.DATE: st.dates().map(str),
    CellType.DATETIME: TIMES,
}
KINDS = st.sampled_from(list(CellType))


@st.composite
def tables(draw):
    """Column types, and pages of rows of cells. The key column comes last as often as first."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=5))
    cells = [st.one_of(st.just(""), VALUES.get(kind, TEXTS)) for kind in kinds]
    pages = draw(st.lists(st.lists(st.tuples(*cells), min_size=1, max_size=6), max_size=3))
    return kinds, pages


def serials(kinds, pages):
    """The same pages as a kind writes them for a spreadsheet: times in its range as numbers."""
    times = [place for place, kind in enumerate(kinds) if kind is CellType.DATETIME]

    def changed(row):
        return [
            f"{40000 + len(cell)}.25" if at in times and cell and cell >= "2000" else cell
            for at, cell in enumerate(row)
        ]

    return [[changed(row) for row in page] for page in pages]


@settings(max_examples=200, deadline=None)
@given(tables(), st.sampled_from([",", ";", "\t"]), st.booleans(), st.sampled_from(["utf-8-sig", "utf-8", "gb18030"]))
def test_csv_bytes_equal_those_of_the_reference(table, delimiter, guard, charset):
    kinds, pages = table
    made_of = columns(*kinds)[1:]
    spec = specification(made_of, delimiter=delimiter, formula_guard=guard, charset=charset)
    lines = [delimiter.join(column.zh for column in made_of)]
    for row in [row for page in pages for row in page]:
        line = delimiter.join(
            reference.csv_field(cell, kind, delimiter=delimiter, guard=guard)
            for cell, kind in zip(row, kinds, strict=True)
        )
        lines.append(line or ('""' if len(kinds) == 1 else line))
    made = Exported(spec, [pages])
    assert made.data == "".join(line + "\r\n" for line in lines).encode(charset)
    replaced = sum(reference.replaced(cell) != cell for page in pages for row in page for cell in row)
    assert sum(warning.count for warning in made.warnings) == replaced


def test_a_full_page_equals_the_reference():
    """2,000 rows of 14 columns, one cell in 50 of them awkward."""
    chance = random.Random(1)
    awkward = ["=1+1", "a\x0bb", "x\r\ny", "z\uffffq", "小林😀", '5" s', "-0.02", "　＝", "a,b", "\x00", "", "-"]
    kinds = [
        CellType.INTEGER,
        *[CellType.TEXT] * 6,
        *[CellType.DATETIME] * 2,
        *[CellType.MONEY] * 2,
        *[CellType.IDENTIFIER] * 3,
    ]
    usual = {CellType.INTEGER: "7", CellType.MONEY: "-1.50", CellType.DATETIME: "2026-09-01 08:30:00.5+08"}

    def cell(kind):
        if kind in usual:
            return usual[kind] if chance.random() < 0.9 else ""
        return chance.choice(awkward) if chance.random() < 0.02 else "北京市朝阳区，建国路（一）"

    rows = [[cell(kind) for kind in kinds] for _ in range(2000)]
    lines = [",".join(reference.csv_field(cell, kind) for cell, kind in zip(row, kinds, strict=True)) for row in rows]
    data = Exported(specification(columns(*kinds)[1:]), [[rows]]).data.decode("utf-8-sig")
    assert data.partition("\r\n")[2] == "".join(line + "\r\n" for line in lines)
    made = Exported(specification(columns(*kinds)[1:], format=Format.XLSX), [serials(kinds, [rows])])
    sheet = openpyxl.load_workbook(io.BytesIO(made.data)).worksheets[0]
    shown = [[_shown(cell) for cell in row] for row in sheet.iter_rows(min_row=2)]
    assert shown == [
        [reference.xlsx_value(cell, kind) for cell, kind in zip(row, kinds, strict=True)]
        for row in serials(kinds, [rows])[0]
    ]


@settings(max_examples=50, deadline=None)
@given(tables())
def test_a_strict_reader_gets_the_values_back(table):
    kinds, pages = table
    data = Exported(specification(columns(*kinds)[1:]), [pages]).data
    records = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    expected = [
        [reference.csv_value(cell, kind) for cell, kind in zip(row, kinds, strict=True)]
        for page in pages
        for row in page
    ]
    assert records[1:] == expected


@settings(max_examples=100, deadline=None)
@given(tables(), st.integers(2, 8))
def test_spreadsheet_values_equal_those_of_the_reference(table, sheet_rows):
    kinds, pages = table
    pages = serials(kinds, pages)
    made = Exported(specification(columns(*kinds)[1:], format=Format.XLSX, sheet_rows=sheet_rows), [pages])
    expected = [
        [reference.xlsx_value(cell, kind) for cell, kind in zip(row, kinds, strict=True)]
        for page in pages
        for row in page
    ]
    book = openpyxl.load_workbook(io.BytesIO(made.data))
    rows = [row for sheet in book.worksheets for row in sheet.iter_rows(min_row=2)]
    assert [[_shown(cell) for cell in row] for row in rows if row] == expected
    quick = values_by_each_reader(made.data)
    assert quick["openpyxl"] == quick["openpyxl read-only"]


def _shown(cell):
    """The value with its type, dates as the number that stands in the file."""
    if cell.value is None or cell.data_type == "b":
        return cell.value
    if cell.data_type == "s":
        return re.sub("_x005F_", "_", cell.value)
    if cell.is_date:
        return openpyxl.utils.datetime.to_excel(cell.value)
    return float(cell.value)
