"""Runs the real stages in this process, one after another, against real Redis, database and disk."""

import datetime as dt
import time
import uuid
from collections.abc import Callable

from exports import service
from exports.contracts import ExportRequest, Format, Principal, Right
from exports.pipeline import plan, render, shard, sweep, upload
from exports.views import TaskView

ANN = Principal("ann", frozenset({Right.SUBMIT, Right.VIEW}))


def submit(first: str, last: str, *, output: Format = Format.CSV, kind: str = "orders", request_id: str = "") -> str:
    """The id of a new task of owner ann."""
    request = ExportRequest(
        kind=kind,
        owner="ann",
        request_id=request_id or uuid.uuid4().hex,
        first_day=dt.date.fromisoformat(first),
        last_day=dt.date.fromisoformat(last),
        format=output,
    )
    return service.submit(request, traceparent=None).task_id


def view(task_id: str) -> TaskView:
    return service.read_task(task_id, principal=ANN)


def work(task_id: str, *, limit_s: float = 30, between: Callable[[], None] = lambda: None) -> TaskView:
    """Let every class of worker take its turn until the task has ended."""
    deadline = time.monotonic() + limit_s
    while not (found := view(task_id)).state.ended:
        assert time.monotonic() < deadline, found
        for actor in (plan.plan, shard.shard, render.render, upload.upload):
            actor.fn()
            between()
        sweep.sweep(boot=True)
    return found


def export(first: str, last: str, *, output: Format = Format.CSV, kind: str = "orders") -> bytes:
    """The finished file's bytes."""
    task_id = submit(first, last, output=output, kind=kind)
    found = work(task_id)
    assert found.state == "succeeded", found
    return read_file(task_id)


def read_file(task_id: str) -> bytes:
    artifact = service.open_file(task_id, principal=ANN)
    return b"".join(artifact.read(0, artifact.size))
