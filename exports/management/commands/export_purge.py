"""`manage.py export_purge`: remove files that have expired or that belong to no task."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from exports import service
from exports.management.base import Answer, ExportCommand


class Command(ExportCommand):
    help = (
        "Removes files past their time, and files of unknown tasks that are older than the retention. Removes nothing "
        "(exit code 1) when Redis is empty or not the one that spool and store belong to."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--dry-run", action="store_true", help="only tell which unknown tasks' files would go")

    def answer(self, given: dict[str, Any]) -> Answer:
        dry_run = given["dry_run"]
        purged = service.purge(dry_run=dry_run)
        data = {
            "refusal": purged.refusal or None,
            "dryRun": dry_run,
            "expired": dict(purged.expired),
            "unknown": dict(purged.unknown),
            "keptUnknown": dict(purged.kept),
        }
        if purged.refusal:
            return Answer([f"nothing was removed: {purged.refusal}"], data, done=False)
        verb = "would remove" if dry_run else "removed"
        lines = [
            *_lines(f"{verb}, expired", purged.expired),
            *_lines(f"{verb}, unknown", purged.unknown),
            *_lines("kept, unknown but younger than the retention", purged.kept),
        ]
        return Answer(lines or ["nothing to remove"], data)


def _lines(what: str, found: Mapping[str, tuple[str, ...]]) -> list[str]:
    return [f"{what}: {place} {task_id}" for place, task_ids in found.items() for task_id in task_ids]
