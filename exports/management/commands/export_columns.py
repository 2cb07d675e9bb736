"""`manage.py export_columns`: the columns of the file, as the page of the docs."""

from typing import Any

from exports.management import columns_page
from exports.management.base import Answer, ExportCommand


class Command(ExportCommand):
    help = "Prints docs/columns.md: every column, its header, and what it looks like in each format."

    def answer(self, given: dict[str, Any]) -> Answer:
        return Answer([columns_page.page().rstrip("\n")], {"columns": columns_page.rows()})
