"""`manage.py export_rerun TASK`: queue a failed task again."""

from argparse import ArgumentParser
from typing import Any

from exports import service
from exports.management import shapes
from exports.management.base import OPERATOR, Answer, TaskCommand, note


class Command(TaskCommand):
    help = "Runs a failed task again. Rows that were written are kept; only what is missing is read."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--from-scratch", action="store_true", help="plan anew and read every row again")

    def answer(self, given: dict[str, Any]) -> Answer:
        task, from_scratch = given["task"], given["from_scratch"]
        view = service.rerun(task, principal=OPERATOR, from_scratch=from_scratch)
        note("rerun", task_id=task, trace_id=view.trace_id, result=f"run {view.epoch}")
        kept = f"{view.processed:,} rows are kept" if view.processed else "from the first row"
        line = f"{view.task_id} is {view.state} again (run {view.epoch}), {kept}"
        return Answer([line], shapes.task_data(view))
