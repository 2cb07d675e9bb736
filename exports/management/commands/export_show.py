"""`manage.py export_show TASK`: one task with its shards, its history and who did what to it."""

from typing import Any

from exports import service
from exports.errors import TaskDeleted
from exports.management import shapes
from exports.management.base import OPERATOR, Answer, TaskCommand, sentence
from exports.service import Details
from exports.views import AuditEntry


class Command(TaskCommand):
    help = "Shows a task: progress, why it failed and where, each shard, what happened to it, and who did what."

    def answer(self, given: dict[str, Any]) -> Answer:
        task = given["task"]
        try:
            return _show(service.read_details(task, principal=OPERATOR))
        except TaskDeleted as error:
            audit = service.read_audit(task, principal=OPERATOR)
            data = {
                "error": sentence(error),
                "code": error.code,
                "audit": [shapes.audit_data(entry) for entry in audit],
            }
            return Answer([sentence(error), *_audit_lines(audit)], data, done=False)


def _show(found: Details) -> Answer:
    lines = [*shapes.task_lines(found.task), "", shapes.SHARD_HEADER, *map(shapes.shard_line, found.shards)]
    lines += ["", "history", *map(shapes.event_line, found.events), *_audit_lines(found.audit)]
    data = {
        **shapes.task_data(found.task),
        "shardList": [shapes.shard_data(shard) for shard in found.shards],
        "events": [shapes.event_data(event) for event in found.events],
        "audit": [shapes.audit_data(entry) for entry in found.audit],
    }
    return Answer(lines, data)


def _audit_lines(audit: list[AuditEntry]) -> list[str]:
    return ["", "audit", *map(shapes.audit_line, audit)]
