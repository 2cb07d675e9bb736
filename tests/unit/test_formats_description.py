import openpyxl
import pytest

from exports.contracts import CellType, Column, Format, PersonalData
from exports.formats import description
from tests.unit.formats_files import exported, workbook


def column(kind: CellType, **options: object) -> Column:
    return Column("c", "列", "Column", kind, **options)


@pytest.mark.parametrize("kind", list(CellType))
def test_every_type_says_what_it_looks_like_in_both_formats(kind: CellType) -> None:
    assert description.csv_form(column(kind))
    assert description.xlsx_form(column(kind)).startswith(("text, ", "number, ", "date", "truth value, "))


@pytest.mark.parametrize(
    ("kind", "block"), [(CellType.MONEY, "1234.00"), (CellType.DATETIME, "2026-09-01 08:30:00+08")]
)
def test_the_example_in_csv_is_what_the_file_holds(kind: CellType, block: str) -> None:
    made_of = (column(kind, scale=2),)
    text = exported(made_of, [[block]], format=Format.CSV).data.decode("utf-8-sig")
    assert text.splitlines()[1] == description.csv_form(made_of[0]).strip("`")


@pytest.mark.parametrize("kind", [kind for kind in CellType if kind is not CellType.BOOLEAN])
def test_the_number_format_is_that_of_the_cell(kind: CellType) -> None:
    made_of = (column(kind, scale=3),)
    value = "2026-09-01" if kind is CellType.DATE else "46266.5"
    cell = workbook(made_of, [[value]]).worksheets[0]["A2"]
    assert isinstance(cell, openpyxl.cell.Cell)
    assert description.xlsx_form(made_of[0]).endswith(f"`{cell.number_format}`")


def test_a_table_has_a_row_for_each_column_and_tells_personal_data_and_labels() -> None:
    made_of = (
        column(CellType.IDENTIFIER),
        column(CellType.TEXT, nullable=True, personal=PersonalData.PHONE),
        column(CellType.ENUM, choices={"paid": ("已付款", "Paid")}),
    )
    rows = description.table(made_of).splitlines()[2:]
    assert [row.rpartition(" | ")[2].removesuffix(" |") for row in rows] == [
        "",
        "may be empty; personal data (phone)",
        "`paid`: 已付款, Paid",
    ]
