"""`manage.py export_settings`: every setting with its default, as the page of the docs."""

from typing import Any

from exports.management import settings_page
from exports.management.base import Answer, ExportCommand


class Command(ExportCommand):
    help = "Prints docs/settings.md: every setting, its default, its bounds and its effect."

    def answer(self, given: dict[str, Any]) -> Answer:
        return Answer([settings_page.page().rstrip("\n")], {"settings": settings_page.rows()})
