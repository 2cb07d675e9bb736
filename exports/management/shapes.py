"""Tasks, shards and events as commands show them: JSON with the names of the API, and lines of text."""

from typing import Any

from exports.messages import Language, failure_sentence
from exports.views import AuditEntry, Event, ShardView, TaskView, to_second


def task_data(view: TaskView) -> dict[str, Any]:
    return {
        "taskId": view.task_id,
        "owner": view.request.owner,
        "requestId": view.request.request_id,
        "kind": view.request.kind,
        "from": view.request.first_day.isoformat(),
        "to": view.request.last_day.isoformat(),
        "format": view.request.format,
        "state": view.state,
        "phase": view.phase,
        "queue": view.queue,
        "epoch": view.epoch,
        "processed": view.processed,
        "total": view.total,
        "shards": {"total": view.shards_total, "done": view.shards_done, "running": view.shards_running},
        "createdAt": to_second(view.created_at),
        "startedAt": to_second(view.started_at),
        "finishedAt": to_second(view.finished_at),
        "expiresAt": to_second(view.expires_at),
        "cancelRequested": view.cancel_requested_at is not None,
        "error": failure_sentence(view.failure, Language.EN) if view.failure else None,
        "errorCode": view.failure.code if view.failure else None,
        "asOf": to_second(view.as_of),
        "drift": {"kind": view.drift.drift, "difference": view.drift.difference} if view.drift else None,
        "warnings": {warning.code: warning.count for warning in view.warnings} or None,
        "fileName": view.file_name or None,
        "fileSize": view.file_size,
        "sha256": view.sha256 or None,
        "objectKey": view.object_key or None,
        "traceId": view.trace_id,
    }


def shard_data(shard: ShardView) -> dict[str, Any]:
    return {
        "shardId": shard.shard_id,
        "state": shard.state,
        "cursor": shard.cursor,
        "rowsWritten": shard.rows_written,
        "planned": shard.planned,
        "pages": shard.pages,
        "pageRows": shard.page_rows,
        "attempts": shard.attempts,
        "recoveries": shard.recoveries,
        "nextTryAt": to_second(shard.next_try_at),
        "holder": shard.holder,
    }


def event_data(event: Event) -> dict[str, Any]:
    return {"at": to_second(event.at), "name": event.name, "detail": event.detail}


def task_line(view: TaskView) -> str:
    """One line of a list."""
    window = f"{view.request.first_day}…{view.request.last_day}"
    rows = f"{view.processed:,}/{view.total:,}" if view.total is not None else f"{view.processed:,}/?"
    reason = f"  {view.failure.code}" if view.failure else ""
    if drift := view.drift.told() if view.drift else "":
        reason += f"  drift {drift}"
    return (
        f"{view.task_id}  {view.state:<9}  {view.phase or '-':<6}  {view.request.format:<4}  {window}  {rows:>19}"
        f"  {view.request.owner}{reason}"
    )


def task_lines(view: TaskView) -> list[str]:
    """Everything about one task that has a value."""
    told = {
        "cancelRequested": "yes" if view.cancel_requested_at else "",
        "drift": (view.drift.told() or view.drift.drift) if view.drift else "",
        "warnings": ", ".join(f"{warning.code} {warning.count:,}" for warning in view.warnings),
    }
    shards = f"{view.shards_done} of {view.shards_total} done, {view.shards_running} running"
    facts = {**task_data(view), **told, "shards": shards}
    return [f"{name:<15} {value}" for name, value in facts.items() if value not in (None, "")]


def shard_line(shard: ShardView) -> str:
    """One line of a table under `SHARD_HEADER`."""
    tries = f"{shard.attempts}/{shard.recoveries}"
    rows = f"{shard.rows_written:,}/{shard.planned:,}"
    return (
        f"  {shard.shard_id:<12} {shard.state:<8} {rows:>17} {shard.pages:>6} {shard.page_rows:>6} {tries:>9}"
        f"  {shard.cursor or '-':<20} {to_second(shard.next_try_at) or ''}"
    )


SHARD_HEADER = (
    f"  {'shard':<12} {'state':<8} {'rows':>17} {'pages':>6} {'size':>6} {'tries':>9}  {'cursor':<20} next try"
)
"""size: rows of a page. tries: failed attempts at the page to come / times its worker was lost."""


def audit_data(entry: AuditEntry) -> dict[str, Any]:
    return {
        "at": to_second(entry.at),
        "action": entry.action,
        "by": entry.by,
        "address": entry.address or None,
        "result": entry.result,
    }


def audit_line(entry: AuditEntry) -> str:
    return f"  {to_second(entry.at)}  {entry.action:<12} {entry.by} {entry.address or '-'}  {entry.result}"


def event_line(event: Event) -> str:
    return f"  {to_second(event.at)}  {event.name:<12} {event.detail}".rstrip()
