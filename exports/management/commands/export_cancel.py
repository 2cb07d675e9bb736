"""`manage.py export_cancel TASK`: end a task that has not succeeded."""

from argparse import ArgumentParser
from typing import Any

from exports import service
from exports.contracts import State
from exports.management import shapes
from exports.management.base import OPERATOR, Answer, TaskCommand, note


class Command(TaskCommand):
    help = "Cancels a task within ten seconds and frees its disk space. A failed task is given up."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--reason", default="", help="why; kept in the task's history")

    def answer(self, given: dict[str, Any]) -> Answer:
        task, reason = given["task"], given["reason"]
        view = service.cancel(task, principal=OPERATOR, reason=reason)
        note("cancel", task_id=task, trace_id=view.trace_id, result=view.state)
        done = view.state is State.CANCELLED
        line = (
            f"{view.task_id} is cancelled"
            if done
            else f"{view.task_id} will be cancelled: its pages are finished first"
        )
        return Answer([line], shapes.task_data(view))
