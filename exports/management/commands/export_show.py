"""`manage.py export_show TASK`: one task with its shards, its history and who did what to it."""

from typing import Any

from exports import service
from exports.errors import TaskDeleted
from exports.management import shapes
from exports.management.base import OPERATOR, Answer, TaskCommand, sentence
from exports.views import AuditEntry


class Command(TaskCommand):
    help = "Shows a task: progress, why it failed and where, each shard, what happened to it, and who did what."

    def answer(self, given: dict[str, Any]) -> Answer:
        task = given["task"]
        audit = service.read_audit(task, principal=OPERATOR)
        try:
            return _show(task, audit)
        except TaskDeleted as error:
            data = {
                "error": sentence(error),
                "code": error.code,
                "audit": [shapes.audit_data(entry) for entry in audit],
            }
            return Answer([sentence(error), *_audit_lines(audit)], data, done=False)


def _show(task: str, audit: list[AuditEntry]) -> Answer:
    view = service.read_task(task, principal=OPERATOR)
    shards = service.read_shards(task, principal=OPERATOR)
    events = service.read_events(task, principal=OPERATOR)
    lines = [*shapes.task_lines(view), "", shapes.SHARD_HEADER, *map(shapes.shard_line, shards)]
    lines += ["", "history", *map(shapes.event_line, events), *_audit_lines(audit)]
    data = {
        **shapes.task_data(view),
        "shardList": [shapes.shard_data(shard) for shard in shards],
        "events": [shapes.event_data(event) for event in events],
        "audit": [shapes.audit_data(entry) for entry in audit],
    }
    return Answer(lines, data)


def _audit_lines(audit: list[AuditEntry]) -> list[str]:
    return ["", "audit", *map(shapes.audit_line, audit)]
