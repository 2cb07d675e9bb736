"""The body of a callback: what happened to which task. No cell of any row, and no key: the receiver asks for more."""

import datetime as dt
import json

from exports.callbacks import CallbackEvent
from exports.views import TaskView, to_second


def make(view: TaskView, event: CallbackEvent) -> str:
    """JSON text. Made once an event and stored: every attempt signs and sends these bytes."""
    failed = view.failure if event is CallbackEvent.FAILED else None
    at = view.read_at if event is CallbackEvent.STALLED else view.finished_at
    data = {
        "taskId": view.task_id,
        "requestId": view.request.request_id,
        "state": view.state,
        "phase": view.phase,
        "epoch": view.epoch,
        "from": view.request.first_day.isoformat(),
        "to": view.request.last_day.isoformat(),
        "format": view.request.format,
        "processed": view.processed,
        "total": view.total,
        "startedAt": to_second(view.started_at),
        "finishedAt": to_second(view.finished_at),
        "errorCode": failed.code if failed else None,
        "fileName": view.file_name or None,
        "fileSize": view.file_size,
        "sha256": view.sha256 or None,
        "traceId": view.trace_id,
    }
    return _dump({"type": event.type, "timestamp": to_second(at), "data": data})


def ping(endpoint_id: str, *, at: dt.datetime) -> str:
    """The body of a test call."""
    return _dump({"type": "export.ping", "timestamp": to_second(at), "data": {"endpoint": endpoint_id}})


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
