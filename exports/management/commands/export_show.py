"""`manage.py export_show TASK`: one task with its shards and its history."""

from typing import Any

from exports import service
from exports.management import shapes
from exports.management.base import OPERATOR, Answer, TaskCommand


class Command(TaskCommand):
    help = "Shows a task: progress, why it failed and where, each shard, and what happened to it."

    def answer(self, given: dict[str, Any]) -> Answer:
        task = given["task"]
        view = service.read_task(task, principal=OPERATOR)
        shards = service.read_shards(task, principal=OPERATOR)
        events = service.read_events(task, principal=OPERATOR)
        lines = [*shapes.task_lines(view), "", shapes.SHARD_HEADER, *map(shapes.shard_line, shards)]
        lines += ["", "history", *map(shapes.event_line, events)]
        data = {
            **shapes.task_data(view),
            "shardList": [shapes.shard_data(shard) for shard in shards],
            "events": [shapes.event_data(event) for event in events],
        }
        return Answer(lines, data)
