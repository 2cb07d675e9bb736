"""`manage.py export_top`: the service at a glance, again and again."""

import time
from argparse import ArgumentParser
from typing import Any

from exports.contracts import State
from exports.management import arguments, shapes
from exports.management.base import Answer, ExportCommand
from exports.operations import overview
from exports.operations.overview import Overview, WorkerView
from exports.views import TaskView, to_second

_CLEAR = "\x1b[H\x1b[2J"


class Command(ExportCommand):
    help = "Shows running and failed tasks, queues and workers until Ctrl-C; once where the output is no terminal."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--every", type=arguments.number(1, 3600), default=2, help="seconds between two looks (2)")
        parser.add_argument("--once", action="store_true", help="one look")

    def handle(self, *_: Any, **given: Any) -> None:
        if given["once"] or given["json"] or not self.stdout.isatty():
            return super().handle(**given)
        try:
            while True:
                self.stdout.write(_CLEAR, ending="")
                super().handle(**given)
                time.sleep(given["every"])
        except KeyboardInterrupt:
            return None

    def answer(self, given: dict[str, Any]) -> Answer:
        seen = overview.overview()
        return Answer(_lines(seen), _data(seen))


def _lines(seen: Overview) -> list[str]:
    counts = "  ".join(f"{state} {seen.states[state]:,}" for state in State)
    oldest = f", the oldest for {seen.oldest_queued.total_seconds():,.0f} s" if seen.oldest_queued else ""
    return [
        f"{to_second(seen.at)}  {seen.rows_per_second:,.0f} rows/s",
        f"{counts}  stalled {seen.stalled:,}{oldest}",
        "",
        f"{'queue':<8} {'tasks':>6} {'hints':>6}",
        *(f"{queue.name:<8} {queue.tasks:>6} {_or_unknown(queue.hints):>6}" for queue in seen.queues),
        "",
        *(_worker_line(worker) for worker in seen.workers),
        *([] if seen.workers else ["no worker gave a sign of life in the last 15 s"]),
        *_section("running", seen.running),
        *_section("failed", seen.failed),
    ]


def _worker_line(worker: WorkerView) -> str:
    doing = ", ".join(f"{step} of {task_id}" for task_id, step in worker.doing)
    return f"{worker.group:<8} {worker.name[:40]:<40}  {doing or ('busy' if worker.busy else 'idle')}"


def _section(title: str, tasks: list[TaskView]) -> list[str]:
    return ["", title, *map(shapes.task_line, tasks)] if tasks else []


def _or_unknown(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


def _data(seen: Overview) -> dict[str, Any]:
    return {
        "at": to_second(seen.at),
        "states": dict(seen.states),
        "stalled": seen.stalled,
        "rowsPerSecond": round(seen.rows_per_second, 1),
        "oldestQueuedSeconds": round(seen.oldest_queued.total_seconds()) if seen.oldest_queued else None,
        "queues": [{"queue": queue.name, "tasks": queue.tasks, "hints": queue.hints} for queue in seen.queues],
        "workers": [
            {
                "name": worker.name,
                "group": worker.group,
                "busy": worker.busy,
                "doing": [{"taskId": task_id, "step": step} for task_id, step in worker.doing],
            }
            for worker in seen.workers
        ],
        "running": [shapes.task_data(view) for view in seen.running],
        "failed": [shapes.task_data(view) for view in seen.failed],
    }
