"""`manage.py export_list`: tasks of all owners, failed ones first."""

from argparse import ArgumentParser
from typing import Any

from exports.contracts import Format, State
from exports.management import arguments, shapes
from exports.management.base import Answer, ExportCommand
from exports.messages import CAUSES
from exports.operations import listing


class Command(ExportCommand):
    help = "Lists tasks of all owners: failed, running, queued, succeeded, cancelled; the latest of each first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--state", choices=[state.value for state in State], help="only tasks in this state")
        parser.add_argument("--stalled", action="store_true", help="only running tasks that make no progress")
        parser.add_argument("--owner", type=arguments.not_empty, help="only tasks of this owner")
        parser.add_argument("--format", choices=[output.value for output in Format], help="only files of this form")
        parser.add_argument("--code", default="", choices=list(CAUSES), help="only tasks that failed with this code")
        parser.add_argument(
            "--since", type=arguments.age, metavar="AGE", help="in their state for at most so long: 90m, 2h, 3d"
        )
        parser.add_argument("--search", type=arguments.not_empty, help="a part of taskId, requestId or traceId")
        parser.add_argument(
            "--limit", type=arguments.number(1, 1000), default=50, help="at most so many, 1 to 1000 (50)"
        )

    def answer(self, given: dict[str, Any]) -> Answer:
        wanted = listing.Wanted(
            state=State(given["state"]) if given["state"] else None,
            stalled=given["stalled"],
            owner=given["owner"] or "",
            format=Format(given["format"]) if given["format"] else None,
            code=given["code"],
            text=given["search"] or "",
            changed_within=given["since"],
        )
        found = listing.find(wanted, limit=given["limit"])
        lines = [shapes.task_line(view) for view in found.tasks] or ["no tasks"]
        return Answer(lines, {"tasks": [shapes.task_data(view) for view in found.tasks], "more": bool(found.more)})
