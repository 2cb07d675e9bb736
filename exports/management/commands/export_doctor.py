"""`manage.py export_doctor`: is everything there that the service needs?"""

from typing import Any

from exports import service
from exports.management.base import Answer, ExportCommand
from exports.pipeline.diagnosis import Finding


class Command(ExportCommand):
    help = (
        "Checks settings, Redis, workers, disks, the orders table and its grants. Exit code 1 when one line says FAIL."
    )

    def answer(self, given: dict[str, Any]) -> Answer:
        findings = service.diagnose()
        lines = [line for found in findings for line in _lines(found)]
        data = [
            {"level": found.level, "name": found.name, "text": found.text, "remedy": found.remedy or None}
            for found in findings
        ]
        failed = any(found.level == "FAIL" for found in findings)
        return Answer(lines, {"findings": data}, done=not failed)


def _lines(found: Finding) -> list[str]:
    line = f"{found.level:<4} {found.name:<20} {found.text}"
    return [line, f"{'':<25} → {found.remedy}"] if found.remedy else [line]
