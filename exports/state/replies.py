"""What the scripts answer, as typed values. Scripts answer lists of strings."""

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from exports.contracts import (
    Drift,
    ExportRequest,
    Format,
    OpenUpload,
    Phase,
    QueueName,
    Recount,
    State,
    Step,
    StoredPart,
    Warning,
)
from exports.state.keys import TaskRef
from exports.views import AuditEntry, Deletion, Event, Failure, ShardView, TaskView

SILENT_MS = 15_000
"""A worker that gave no sign of life for so long counts as gone."""

SPEED_WINDOW_MS = 10_000
"""Of `lua/shared/progress.lua`: the speed is counted from a moment that is one to two of these old."""

RESTARTS = ("slices", "memory", "died")
"""Why a worker ended whose place another one takes."""


@dataclass(frozen=True, slots=True)
class Record:
    """A shard's record, see `lua/shared/records.lua`. drift: None until the shard is done."""

    planned: int
    rows: int
    seen: int
    pages: int
    page_rows: int
    attempts: int
    recoveries: int
    drift: Recount | None
    cursor: str


@dataclass(frozen=True, slots=True)
class Lease:
    """expiry_ms: by the server's clock. worker: as given to `claim`."""

    step: str
    expiry_ms: int
    fence: int
    claim: str
    begun: bool
    worker: str

    @property
    def is_shard(self) -> bool:
        return self.step not in (Step.PLAN, Step.RENDER, Step.UPLOAD)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A task that may have a step to claim. queue: None before the plan, spool: "" then."""

    task_id: str
    queue: QueueName | None
    spool: str


@dataclass(frozen=True, slots=True)
class WorkerSign:
    """What a worker told of itself last. rss_mb: its memory."""

    group: str
    busy: bool
    spool: str
    rss_mb: int


@dataclass(frozen=True, slots=True)
class Claim:
    """One step held by this worker. `record` and `constants` only for a shard. starts_task: the task was queued."""

    ref: TaskRef
    step: Step
    name: str
    fence: int
    claim_id: str
    record: Record | None
    constants: str
    request: ExportRequest
    epoch: int
    as_of: str
    object_key: str
    sha256: str
    planned_rows: int
    queue: QueueName | None
    traceparent: str
    starts_task: bool


@dataclass(frozen=True, slots=True)
class NoClaim:
    """No step was claimed. reason: full, wait, done, stop, elsewhere, foreign or gone. wait_ms only for wait."""

    reason: str
    wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class LimitHit:
    """No task was made. task_id: the owner's task that is first to end, or "". wait_ms: 0 where nobody can tell."""

    reason: str
    task_id: str
    wait_ms: int = 0


def limit_hit(reply: Sequence[str]) -> LimitHit:
    reason, task_id, *wait = reply
    return LimitHit(reason, task_id, int(wait[0]) if wait else 0)


def clock_ms(seconds: int, micros: int) -> int:
    """What TIME answers, as milliseconds since 1970."""
    return seconds * 1000 + micros // 1000


def proposal(task_id: str, queue: str, spool: str) -> Proposal:
    return Proposal(task_id, _queue(queue), spool)


def _queue(text: str | None) -> QueueName | None:
    return QueueName(text) if text else None


def worker_text(sign: WorkerSign, now_ms: int) -> str:
    return f"{now_ms}|{sign.group}|{int(sign.busy)}|{sign.spool}|{sign.rss_mb}"


def alive_workers(signs: Mapping[str, str], now_ms: int) -> dict[str, WorkerSign]:
    """Those that gave a sign of life lately. An older version tells neither spool nor memory, a newer one perhaps more."""
    told = {worker: [*text.split("|"), "", "0"][:5] for worker, text in signs.items()}
    return {
        worker: WorkerSign(group, busy == "1", spool, int(rss_mb))
        for worker, (at, group, busy, spool, rss_mb) in told.items()
        if now_ms - int(at) <= SILENT_MS
    }


def moment(milliseconds: str | float) -> dt.datetime:
    """A time kept as milliseconds since 1970."""
    return dt.datetime.fromtimestamp(int(milliseconds) / 1000, tz=dt.UTC)


def _moment_if_any(text: str | None) -> dt.datetime | None:
    return moment(text) if text else None


def pairs(flat: Sequence[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


def drift_text(recount: Recount) -> str:
    if recount.drift is Drift.CHANGED and recount.difference:
        return str(recount.difference)
    return str(recount.drift)


def _recount(text: str) -> Recount | None:
    if text == "":
        return None
    if text in set(Drift):
        return Recount(Drift(text))
    return Recount(Drift.CHANGED, int(text))


def record(text: str) -> Record:
    planned, rows, seen, pages, page_rows, attempts, recoveries, drift, cursor = text.split("|", 8)
    return Record(
        planned=int(planned),
        rows=int(rows),
        seen=int(seen),
        pages=int(pages),
        page_rows=int(page_rows),
        attempts=int(attempts),
        recoveries=int(recoveries),
        drift=_recount(drift),
        cursor=cursor,
    )


def lease(step: str, text: str) -> Lease:
    expiry_ms, fence, claim, begun, worker = text.split("|", 4)
    return Lease(step, int(expiry_ms), int(fence), claim, begun == "1", worker)


def export_request(fields: Mapping[str, str]) -> ExportRequest:
    return ExportRequest(
        kind=fields["kind"],
        owner=fields["owner"],
        request_id=fields["request_id"],
        first_day=dt.date.fromisoformat(fields["first_day"]),
        last_day=dt.date.fromisoformat(fields["last_day"]),
        format=Format(fields["format"]),
        masked=fields.get("masked") == "1",
    )


def claim(ref: TaskRef, step: Step, claim_id: str, reply: Sequence[str]) -> Claim:
    name, fence, text, constants, starts_task, *flat = reply[1:]
    fields = pairs(flat)
    return Claim(
        ref=ref,
        step=step,
        name=name,
        fence=int(fence),
        claim_id=claim_id,
        record=record(text) if text else None,
        constants=constants,
        request=export_request(fields),
        epoch=int(fields["epoch"]),
        as_of=fields.get("as_of", ""),
        object_key=fields.get("object_key", ""),
        sha256=fields.get("sha256", ""),
        planned_rows=int(fields.get("planned_rows", "0")),
        queue=_queue(fields.get("queue")),
        traceparent=fields["traceparent"],
        starts_task=starts_task == "1",
    )


def upload_text(upload: OpenUpload) -> str:
    return f"{upload.part_size}|{upload.sha256}|{upload.key}|{upload.upload_id}"


def upload_parts(fields: Mapping[str, str]) -> tuple[OpenUpload, dict[int, StoredPart]] | None:
    """The upload that was begun, and its parts by their numbers; None when there is none."""
    if "" not in fields:
        return None
    part_size, sha256, key, upload_id = fields[""].split("|", 3)
    parts = {int(number): StoredPart(*text.rsplit("|", 1)) for number, text in fields.items() if number}
    return OpenUpload(key, sha256, upload_id, int(part_size)), parts


def warnings_text(warnings: Iterable[Warning]) -> str:
    return json.dumps([[warning.code, warning.count, list(warning.keys)] for warning in warnings])


def _warnings(text: str) -> tuple[Warning, ...]:
    return tuple(Warning(code, count, tuple(keys)) for code, count, keys in json.loads(text or "[]"))


def _failure(fields: Mapping[str, str]) -> Failure | None:
    if fields["state"] != State.FAILED:
        return None
    return Failure(
        code=fields["error_code"],
        phase=Phase(fields["error_phase"]) if fields["error_phase"] else None,
        shard_id=fields["error_shard"],
        page=int(fields["error_page"]),
        cursor=fields["error_cursor"],
        attempts=int(fields["error_attempts"]),
        retryable=fields["error_retryable"] == "1",
    )


def _deletion(fields: Mapping[str, str]) -> Deletion | None:
    if "deleted_at" not in fields:
        return None
    return Deletion(moment(fields["deleted_at"]), fields["deleted_by"], fields["deleted_reason"])


def task_view(task_id: str, reply: Sequence[str]) -> TaskView:
    now, processed, total, shards, done, running, certainty, difference, before = reply[1:10]
    fields = pairs(reply[10:])
    state = State(fields["state"])
    rows = fields.get("rows", "0") if state is State.SUCCEEDED else ""
    return TaskView(
        task_id=task_id,
        request=export_request(fields),
        state=state,
        phase=Phase(fields["phase"]) if fields["phase"] else None,
        epoch=int(fields["epoch"]),
        processed=int(rows or processed),
        total=int(rows or total) if fields["phase"] else None,
        created_at=moment(fields["created_at"]),
        started_at=_moment_if_any(fields["started_at"]),
        finished_at=_moment_if_any(fields["finished_at"]),
        failure=_failure(fields),
        cancel_requested_at=_moment_if_any(fields["cancel_requested_at"]),
        shards_total=int(shards),
        shards_done=int(done),
        shards_running=int(running) if fields["phase"] == Phase.FETCH else 0,
        drift=Recount(Drift(certainty), int(difference)) if fields["phase"] and done == shards else None,
        as_of=dt.datetime.fromisoformat(fields["as_of"]) if fields.get("as_of") else None,
        warnings=_warnings(fields.get("warnings", "")),
        file_name=fields.get("file_name", ""),
        file_size=int(fields["file_size"]) if fields.get("file_size") else None,
        sha256=fields.get("sha256", ""),
        object_key=fields.get("object_key", ""),
        expires_at=_moment_if_any(fields.get("expires_at")),
        queue=_queue(fields.get("queue")),
        spool=fields.get("spool", ""),
        stranded=bool(fields.get("stranded_since")),
        traceparent=fields["traceparent"],
        foreign=bool(fields.get("foreign_since")),
        run_ms=int(fields.get("run_ms", "0")),
        queued_before=int(before) if before else None,
        progress_at=_moment_if_any(fields.get("progress_at")),
        stalled_at=_moment_if_any(fields.get("stalled_at")),
        rows_per_second=_speed(fields, int(now)),
        deleted=_deletion(fields),
        read_at=moment(now),
    )


def _speed(fields: Mapping[str, str], now_ms: int) -> float | None:
    """Rows a second until now, since the older of two moments, or the younger once that is a window old; None where
    nothing was committed since.
    """
    if not fields.get("mark_at"):
        return None
    age_ms = now_ms - int(fields["next_at"])
    mark = "mark" if age_ms < SPEED_WINDOW_MS else "next"
    took_ms = now_ms - int(fields[f"{mark}_at"])
    rows = int(fields.get("rows_done", "0")) - int(fields[f"{mark}_rows"])
    return rows * 1000 / took_ms if rows > 0 and took_ms > 0 and age_ms < 2 * SPEED_WINDOW_MS else None


def shard_views(
    shards: Mapping[str, str], pending: Mapping[str, float], running: Mapping[str, str], done: frozenset[str]
) -> list[ShardView]:
    return [
        _shard_view(shard_id, record(text), pending.get(shard_id), running.get(shard_id), done=shard_id in done)
        for shard_id, text in sorted(shards.items())
    ]


def _shard_view(shard_id: str, found: Record, due: float | None, held: str | None, *, done: bool) -> ShardView:
    return ShardView(
        shard_id=shard_id,
        state="running" if held else "done" if done or found.drift else "pending",
        cursor=found.cursor,
        rows_written=found.rows,
        planned=found.planned,
        pages=found.pages,
        page_rows=found.page_rows,
        attempts=found.attempts,
        recoveries=found.recoveries,
        drift=found.drift,
        next_try_at=moment(due) if due else None,
        holder=lease(shard_id, held).worker if held else "",
    )


def audit_entry(text: str) -> AuditEntry:
    at, *others = text.split("|", 4)
    return AuditEntry(moment(at), *others)


def event(text: str) -> Event:
    at, name, detail = text.split("|", 2)
    return Event(moment(at), name, detail)
