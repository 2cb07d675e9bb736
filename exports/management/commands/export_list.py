"""`manage.py export_list`: tasks of all owners, the newest first."""

from argparse import ArgumentParser
from typing import Any

from exports import service
from exports.contracts import State
from exports.management import shapes
from exports.management.base import Answer, ExportCommand


def _limit(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 1000:
        raise ValueError
    return number


class Command(ExportCommand):
    help = "Lists tasks of all owners, the newest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--state", type=State, choices=list(State), help="only tasks in this state")
        parser.add_argument("--stalled", action="store_true", help="only running tasks without progress")
        parser.add_argument("--limit", type=_limit, default=50, help="at most so many, 1 to 1000 (50)")

    def answer(self, given: dict[str, Any]) -> Answer:
        stalled, limit = given["stalled"], given["limit"]
        state = State.RUNNING if stalled else given["state"]
        wanted = [state] if state else list(State)
        found = [view for one in wanted for view in service.list_all(state=one, limit=limit)]
        found = [view for view in found if not stalled or service.is_stalled(view)]
        newest = sorted(found, key=lambda view: view.task_id, reverse=True)[:limit]
        lines = [shapes.task_line(view) for view in newest] or ["no tasks"]
        return Answer(lines, {"tasks": [shapes.task_data(view) for view in newest]})
