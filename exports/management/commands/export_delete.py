"""`manage.py export_delete TASK --reason WHY`: remove an ended task and its file before their time."""

from argparse import ArgumentParser
from typing import Any

from exports import service
from exports.management import arguments
from exports.management.base import OPERATOR, Answer, TaskCommand, note


class Command(TaskCommand):
    help = (
        "Removes an ended task's file, manifest and spool now; who, when and why is kept until it would have expired."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--reason", type=arguments.reason, required=True, help="why, at most 200 characters; no personal data"
        )

    def answer(self, given: dict[str, Any]) -> Answer:
        task, reason = given["task"], given["reason"]
        done = service.delete(task, principal=OPERATOR, reason=reason)
        note("delete", task_id=task, trace_id=done.task.trace_id, result="deleted")
        line = f"{task} is deleted" + ("" if done.file_removed else "; its file goes when the file store is back")
        data = {"taskId": task, "deleted": True, "fileRemoved": done.file_removed}
        return Answer([line], data, done=done.file_removed)
