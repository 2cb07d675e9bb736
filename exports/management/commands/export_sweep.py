"""`manage.py export_sweep`: what every worker does every few seconds, once and now."""

from typing import Any

from exports import service
from exports.management.base import Answer, ExportCommand


class Command(ExportCommand):
    help = "One sweep: takes steps back from dead workers, completes cancels, wakes workers, cleans up."

    def answer(self, given: dict[str, Any]) -> Answer:
        service.sweep_once()
        return Answer(["swept"], {"swept": True})
