"""A task as JSON: the nine frozen fields first, in their order, then what was added."""

import datetime as dt

from exports import service
from exports.contracts import Recount, State
from exports.messages import Language, failure_sentence
from exports.progress import outlook
from exports.views import Failure, TaskView, to_second


def represent(view: TaskView, *, language: Language, download_url: str | None) -> dict[str, object]:
    """All fields, always. download_url: of a succeeded task whose file is kept."""
    return {
        **_frozen(view, language=language, download_url=download_url),
        **_request(view),
        **_result(view),
        **_work(view),
        **_outlook(view),
    }


def to_millisecond(time: dt.datetime) -> str:
    """UTC, as lists tell from when to ask next."""
    return f"{time.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z"


def to_microsecond(time: dt.datetime | None) -> str | None:
    """UTC in full: a cut-off is only true with its fraction."""
    return time.astimezone(dt.UTC).isoformat().replace("+00:00", "Z") if time else None


def _frozen(view: TaskView, *, language: Language, download_url: str | None) -> dict[str, object]:
    failure = _failure(view)
    return {
        "taskId": view.task_id,
        "state": view.state,
        "phase": view.phase,
        "processed": view.processed,
        "total": view.total,
        "startedAt": to_second(view.started_at),
        "finishedAt": to_second(view.finished_at),
        "error": failure_sentence(failure, language) if failure else None,
        "downloadUrl": download_url,
    }


def _request(view: TaskView) -> dict[str, object]:
    return {
        "requestId": view.request.request_id,
        "from": view.request.first_day.isoformat(),
        "to": view.request.last_day.isoformat(),
        "format": view.request.format,
        "createdAt": to_second(view.created_at),
    }


def _result(view: TaskView) -> dict[str, object]:
    failure = _failure(view)
    return {
        "errorCode": failure.code if failure else None,
        "errorDetail": _detail(failure) if failure else None,
        "warnings": [{"code": item.code, "count": item.count, "keys": list(item.keys)} for item in view.warnings],
        "fileName": view.file_name or None,
        "fileSize": view.file_size,
        "sha256": view.sha256 or None,
        "expiresAt": to_second(service.file_expires_at(view) or view.expires_at),
    }


def _work(view: TaskView) -> dict[str, object]:
    return {
        "asOf": to_microsecond(view.as_of),
        "drift": _drift(view.drift) if view.drift else None,
        "shards": {"total": view.shards_total, "done": view.shards_done, "running": view.shards_running},
        "cancelRequested": view.cancel_requested_at is not None or view.state is State.CANCELLED,
        "traceId": view.trace_id,
    }


def _outlook(view: TaskView) -> dict[str, object]:
    stalled = service.is_stalled(view)
    found = outlook(view, stalled=stalled)
    return {
        "progress": found.percent,
        "rowsPerSecond": found.rows_per_second,
        "etaSeconds": found.eta_s,
        "queue": view.queue,
        "queuePosition": found.queue_position,
        "stalled": stalled,
        "pollAfterMs": found.poll_after_ms,
    }


def _failure(view: TaskView) -> Failure | None:
    return view.failure if view.state is State.FAILED else None


def _detail(failure: Failure) -> dict[str, object]:
    return {
        "phase": failure.phase,
        "shardId": failure.shard_id or None,
        "page": failure.page or None,
        "cursor": failure.cursor or None,
        "attempts": failure.attempts,
        "retryable": failure.retryable,
    }


def _drift(recount: Recount) -> dict[str, object]:
    return {"kind": recount.drift, "difference": recount.difference}
