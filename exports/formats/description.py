"""What the columns of a file look like, in words: for the page of the docs and for the published schema."""

from collections.abc import Sequence

from exports.contracts import CellType, Column
from exports.formats.row_markup import number_format

_TEXTS = {
    CellType.TEXT: "text",
    CellType.IDENTIFIER: "text, with all its digits",
    CellType.ENUM: "text",
    CellType.JSON: "JSON, keys sorted",
    CellType.UUID: "lower case, with hyphens",
    CellType.URL: "text, no link",
    CellType.BYTES: "hexadecimal, lower case",
    CellType.INTEGER: "digits",
    CellType.FLOAT: "shortest form that reads back",
    CellType.BOOLEAN: "`true`, `false`",
    CellType.DATE: "`2026-09-01`",
    CellType.DATETIME: "`2026-09-01T08:30:00+08:00`",
}
_CELLS = {
    CellType.INTEGER: "number",
    CellType.DECIMAL: "number",
    CellType.MONEY: "number",
    CellType.FLOAT: "number",
    CellType.BOOLEAN: "truth value",
    CellType.DATE: "date",
    CellType.DATETIME: "date and time",
}
_HEAD = """\
| column | header | in English | type | in CSV | in XLSX | notes |
|---|---|---|---|---|---|---|
"""


def table(columns: Sequence[Column]) -> str:
    """Markdown, a row for each column, in the order of the file."""
    return _HEAD + "".join(f"| {' | '.join(_row(column))} |\n" for column in columns)


def csv_form(column: Column) -> str:
    """How a CSV file spells the column."""
    if column.type in (CellType.DECIMAL, CellType.MONEY):
        return f"`{1234:.{column.scale}f}`"
    return _TEXTS[column.type]


def xlsx_form(column: Column) -> str:
    """The kind of cell in a spreadsheet, and its number format."""
    return f"{_CELLS.get(column.type, 'text')}, `{number_format(column)}`"


def _row(column: Column) -> Sequence[str]:
    forms = (column.type.value, csv_form(column), xlsx_form(column))
    return (f"`{column.name}`", column.zh, column.en, *forms, "; ".join(_notes(column)))


def _notes(column: Column) -> Sequence[str]:
    notes = ["may be empty"] if column.nullable else []
    if column.personal is not None:
        notes.append(f"personal data ({column.personal.value})")
    notes += [f"`{value}`: {zh}, {en}" for value, (zh, en) in column.choices.items()]
    return notes
