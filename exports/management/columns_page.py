"""`docs/columns.md`, made from the columns that the configured kinds declare."""

from typing import Any

from exports import kinds
from exports.formats import description

_HEAD = """\
# Columns of the file

Made by `python manage.py export_columns > docs/columns.md` from the declaration of the columns; a test keeps the two equal. The published schema
(`/api/schema/`) has the same table. A setting, [`header_language`](settings.md), decides whether the header is Chinese or English.

"""
_RULES = """\
## What holds for every column

- No value (NULL), a zero date and a number that is not finite are empty.
- Times are those of the business time zone. In CSV they carry their offset, and a fraction of a second if there is one.
- A character that XML does not allow, a separator character (U+001E, U+001F), half a surrogate pair and bytes that are no text become U+FFFD, alike in both
  formats. `warnings` counts such cells as `replaced_characters` and names the keys of the first rows.
- Personal data shows `***` where the deployment masks it (`mask_personal`) and the owner had no right to it.
- CSV is quoted as RFC 4180 says. Text that a spreadsheet may take for a formula gets an apostrophe in front (`formula_guard`), a plain negative number does not.
- In XLSX text is never a formula or a link. Numbers of more than 15 significant digits, and dates that Excel cannot hold (before 1900-03-01, after
  9999-12-31), are text. Text of more than 32,767 characters is cut, and counted in `warnings` as `cut_cells`. Line breaks are LF; the cell is not wrapped,
  so that every row is one line high.
"""


def page() -> str:
    """The whole page as Markdown."""
    return _HEAD + "".join(f"## {name}\n\n{description.table(columns)}\n" for name, columns in _declared()) + _RULES


def rows() -> list[dict[str, Any]]:
    """Every column of every kind, in the order of the file."""
    return [
        {
            "kind": name,
            "name": column.name,
            "labels": {"zh": column.zh, "en": column.en},
            "type": column.type.value,
            "csv": description.csv_form(column),
            "xlsx": description.xlsx_form(column),
            "nullable": column.nullable,
            "personal": column.personal and column.personal.value,
        }
        for name, columns in _declared()
        for column in columns
    ]


def _declared() -> list[tuple[str, Any]]:
    return [(name, kinds.get(name).columns) for name in kinds.names()]
