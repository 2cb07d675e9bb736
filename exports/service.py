"""The one door to the exports for the API, the ops page and the commands."""

import datetime as dt
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ulid import ULID

from exports import formats, kinds, storage
from exports.callbacks import Callback, CallbackKey, Outcome
from exports.conf import conf
from exports.contracts import (
    AuditEntry,
    Event,
    ExportRequest,
    Principal,
    Right,
    ShardView,
    State,
    Step,
    StepView,
    TaskView,
)
from exports.errors import (
    FieldInvalid,
    LimitReached,
    RequestConflict,
    StateConflict,
    TaskDeleted,
    TaskGone,
    TaskUnknown,
    WindowTooLong,
)
from exports.messages import NOT_A_CALLBACK
from exports.pipeline import diagnosis, endings, hints, manifest, outbox, purging, sweep, verifying, workers
from exports.pipeline.diagnosis import Finding
from exports.pipeline.estimate import Estimate
from exports.pipeline.estimate import estimate as make_estimate
from exports.pipeline.purging import Purged
from exports.pipeline.specification import specify
from exports.pipeline.verifying import Proof
from exports.state.keys import ref_of
from exports.state.replies import LimitHit
from exports.state.store import Counters, store
from exports.telemetry import logs, trace

_events = logs.events(__name__)
_PREFIX = "exp_"
REASON_MAX = 200
_REQUEST_ID_MAX = 255
_QUEUE_WAIT_S = 15
_MOST_CHANGED = 1000


@dataclass(frozen=True, slots=True)
class Submitted:
    """created: False when the requestId had this task already."""

    task_id: str
    state: State
    created: bool
    trace_id: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """A finished file. read: (offset, length) → chunks.

    link: `Content-Disposition` → a URL that serves the file for a minute, never to be stored or logged; None where it
    is to be streamed.
    """

    file_name: str
    content_type: str
    size: int
    sha256: str
    epoch: int
    trace_id: str
    read: Callable[[int, int], Iterator[bytes]]
    link: Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Replayed:
    """A callback that is sent anew."""

    task_id: str
    trace_id: str
    callback_id: str


def default_kind() -> str:
    """The kind that `POST /api/orders/export` exports."""
    return kinds.names()[0]


def must_mask(principal: Principal) -> bool:
    """Whether exports of this principal must not show personal data; to be asked at submit."""
    return conf().mask_personal and not principal.may(Right.PERSONAL)


def submit(request: ExportRequest, *, traceparent: str | None) -> Submitted:
    """Make a task, or find the one that has this requestId.

    Raises: FieldInvalid, WindowTooLong, RequestConflict, LimitReached, TaskGone, StateUnavailable; nothing is written then.
    """
    _check(request)
    traceparent = traceparent or trace.new_traceparent()
    fingerprint = _fingerprint(request)
    ref = ref_of(f"{_PREFIX}{ULID()}", request)
    known = store().submit(ref, request, fingerprint=fingerprint, traceparent=traceparent)
    if known is None:
        with logs.bound(taskId=ref.id, traceId=trace.trace_id(traceparent)):
            _events.info("task.submitted", kind=request.kind, format=str(request.format), days=_days(request))
        hints.send(Step.PLAN, traceparent=traceparent)
        return Submitted(ref.id, State.QUEUED, created=True, trace_id=trace.trace_id(traceparent))
    if isinstance(known, LimitHit):
        raise _limit_reached(known)
    task_id, known_fingerprint = known
    if known_fingerprint != fingerprint:
        raise RequestConflict("the requestId belongs to another export")
    view = store().read(task_id)
    if view is None:
        raise TaskGone("the task of this requestId has just expired")
    if view.deleted:
        raise TaskDeleted(view.deleted)
    return Submitted(task_id, view.state, created=False, trace_id=view.trace_id)


def estimate(request: ExportRequest) -> Estimate:
    """What an export would be; nothing is written.

    Raises: FieldInvalid, WindowTooLong, SourceUnavailable, StepBroken, StateUnavailable.
    """
    _check(request)
    return make_estimate(request)


def _limit_reached(hit: LimitHit) -> LimitReached:
    """Nobody can tell when a place in the queue comes free: a caller asks again after some seconds."""
    code, limit = {
        "queued": ("queue_full", conf().queued_per_owner),
        "made": ("too_many_submits", conf().submits_per_minute),
    }[hit.reason]
    wait_s = math.ceil(hit.wait_ms / 1000) or _QUEUE_WAIT_S
    return LimitReached(code, limit=limit, retry_after_s=wait_s, running=store().read(hit.task_id))


def _check(request: ExportRequest) -> None:
    if not request.request_id or len(request.request_id) > _REQUEST_ID_MAX or not request.request_id.isprintable():
        raise FieldInvalid("requestId", f"must be 1 to {_REQUEST_ID_MAX} printable characters")
    if request.last_day < request.first_day:
        raise FieldInvalid("to", "must not be before from")
    if _days(request) > conf().max_days:
        raise WindowTooLong(_days(request), conf().max_days)


def _days(request: ExportRequest) -> int:
    return (request.last_day - request.first_day).days + 1


def _fingerprint(request: ExportRequest) -> str:
    body = f"{request.kind}\0{request.first_day}\0{request.last_day}\0{request.format}"
    return hashlib.sha256(body.encode()).hexdigest()[:32]


def read_task(task_id: str, *, principal: Principal) -> TaskView:
    """A task as its owner or an operator sees it; completes a cancel that is old enough, and notes a stall.

    Raises: TaskUnknown (also for another owner's), TaskGone, TaskDeleted, StateUnavailable.
    """
    view = _read(task_id, principal=principal)
    if view.cancel_requested_at is not None and sweep.complete_cancel(view):
        view = _read(task_id, principal=principal)
    if is_stalled(view):
        sweep.mark_stalled(view)
    return view


def is_stalled(view: TaskView) -> bool:
    """Whether a running task has made no progress for longer than is in order."""
    return sweep.is_stalled(view)


def _read(task_id: str, *, principal: Principal) -> TaskView:
    view = _find(task_id, principal=principal)
    if view.deleted:
        raise TaskDeleted(view.deleted)
    return view


def _find(task_id: str, *, principal: Principal) -> TaskView:
    """A task, deleted or not."""
    view = store().read(task_id)
    if view is None:
        if _expired(task_id):
            raise TaskGone("the task is kept no longer")
        raise TaskUnknown("there is no such task")
    if view.request.owner != principal.owner and not (principal.may(Right.OPS_READ) or principal.may(Right.OPS_ACT)):
        raise TaskUnknown("there is no such task")
    return view


def _expired(task_id: str) -> bool:
    """Whether an unknown task id is older than tasks are kept; the id tells its age."""
    try:
        made_at = ULID.from_str(task_id.removeprefix(_PREFIX)).datetime
    except ValueError:
        return False
    return dt.datetime.now(dt.UTC) - made_at > dt.timedelta(days=conf().state_days)


def list_tasks(
    *, principal: Principal, state: State | None = None, limit: int = 50, before: str = ""
) -> list[TaskView]:
    """The principal's own tasks, newest first. before: only tasks older than this one."""
    ids = [task_id for task_id in store().owned(principal.owner) if not before or task_id < before]
    return _views(ids, state=state, limit=limit, principal=principal)


def list_changed(*, principal: Principal, since: dt.datetime) -> tuple[dt.datetime, list[TaskView]]:
    """The principal's own tasks that changed since a moment, and the moment to ask from next time.

    A task that changes while they are read is told once more.
    """
    since_ms = round(since.timestamp() * 1000)
    next_ms, ids = store().changed(principal.owner, since_ms=since_ms, limit=_MOST_CHANGED)
    return dt.datetime.fromtimestamp(next_ms / 1000, dt.UTC), store().read_all(ids)


def now() -> dt.datetime:
    """By the clock of the state. Raises: StateUnavailable."""
    return dt.datetime.fromtimestamp(store().now_ms() / 1000, dt.UTC)


def _views(ids: list[str], *, state: State | None, limit: int, principal: Principal) -> list[TaskView]:
    views: list[TaskView] = []
    for task_id in ids:
        if len(views) == limit:
            break
        try:
            view = read_task(task_id, principal=principal)
        except (TaskUnknown, TaskGone):
            continue
        if state is None or view.state is state:
            views.append(view)
    return views


def read_shards(task_id: str, *, principal: Principal) -> list[ShardView]:
    """The shards of a task, in file order. Raises as `read_task`."""
    _read(task_id, principal=principal)
    return store().shards(task_id)


def read_steps(task_id: str, *, principal: Principal) -> list[StepView]:
    """Plan, render and upload of a task, where one is held or waits. Raises as `read_task`."""
    _read(task_id, principal=principal)
    return store().whole_steps(task_id)


def read_events(task_id: str, *, principal: Principal) -> list[Event]:
    """The bounded history of a task, oldest first. Raises as `read_task`."""
    _read(task_id, principal=principal)
    return store().events(task_id)


def read_audit(task_id: str, *, principal: Principal) -> list[AuditEntry]:
    """Who did what to a task, oldest first; also to a deleted one. Raises as `read_task`."""
    _find(task_id, principal=principal)
    return store().audit(task_id)


def cancel(task_id: str, *, principal: Principal, reason: str = "") -> TaskView:
    """Accept a cancel, or find the task cancelled already. reason: kept in the task's history.

    Raises: StateConflict `cannot_cancel` for a task that has succeeded; FieldInvalid for a reason that is too long; as
    `read_task`.
    """
    view, by = _act_on(task_id, principal=principal), _signed(principal, reason)
    outbox.keep_untold(view)
    word = store().cancel(ref_of(task_id, view.request), by=by)
    if word == "refused":
        raise StateConflict("cannot_cancel", State.SUCCEEDED)
    with logs.bound(taskId=task_id, traceId=view.trace_id):
        _events.info("task.cancel", by=principal.owner, reason=reason or None, answer=word)
        if word == "already":
            endings.free(task_id, view.request)
        endings.settle(task_id, view.request, word)
    return read_task(task_id, principal=principal)


def rerun(
    task_id: str,
    *,
    principal: Principal,
    from_scratch: bool = False,
    again: Sequence[str] = (),
    page_rows: int = 0,
    reason: str = "",
) -> TaskView:
    """Queue a failed task again: what is missing, or everything.

    again: shards to read from their first row. page_rows: of the pages to come; 0: as they were. reason: kept in the
    task's history.

    Raises: StateConflict `cannot_rerun` (not failed) or `specification_changed` (only from scratch); FieldInvalid for
    a shard that the task does not have or a page size out of bounds; as `read_task`.
    """
    view, by = _act_on(task_id, principal=principal), _signed(principal, reason)
    _check_rerun(from_scratch, again=again, page_rows=page_rows)
    outbox.keep_untold(view)
    if from_scratch and view.state is State.FAILED:
        storage.spool().remove(task_id)
    word = store().rerun(
        ref_of(task_id, view.request),
        digest=specify(view.request).digest(),
        from_scratch=from_scratch,
        again=again,
        page_rows=page_rows,
        by=by,
    )
    if word == "gone":
        raise TaskGone("the task is kept no longer")
    if word in ("foreign", "lost"):
        raise StateConflict("specification_changed", view.state)
    if word == "refused":
        raise StateConflict("cannot_rerun", view.state)
    if word == "unknown":
        raise FieldInvalid("shard", "is not a shard of this task")
    with logs.bound(taskId=task_id, traceId=view.trace_id):
        _events.info("task.rerun", by=principal.owner, reason=reason or None, scratch=from_scratch)
    queued = read_task(task_id, principal=principal)
    hints.send(sweep.STEP_OF[queued.phase], traceparent=view.traceparent)
    return queued


def _check_rerun(from_scratch: bool, *, again: Sequence[str], page_rows: int) -> None:
    if from_scratch and (again or page_rows):
        raise FieldInvalid("fromScratch", "reads every shard in pages of the usual size")
    if page_rows and not conf().page_rows_min <= page_rows <= conf().page_rows:
        raise FieldInvalid("pageRows", f"must be from {conf().page_rows_min} to {conf().page_rows}")


def _signed(principal: Principal, reason: str) -> str:
    """Who acts, and why, as a task's history keeps it."""
    if len(reason) > REASON_MAX or not reason.isprintable():
        raise FieldInvalid("reason", f"must have at most {REASON_MAX} printable characters")
    return f"{principal.owner}: {reason}" if reason else principal.owner


def delete(task_id: str, *, principal: Principal, reason: str) -> TaskView:
    """Remove an ended task's file, manifest and spool at once, and leave who, when and why. Deleting it again is fine.

    Raises: StateConflict `cannot_delete` for one that has not ended; StoreUnavailable when the file could not be
    removed yet (the sweep goes on with it); as `read_task`.
    """
    view = _may_act_on(_find(task_id, principal=principal), principal=principal)
    outbox.keep_untold(view)
    word = store().delete(ref_of(task_id, view.request), by=principal.owner, reason=reason)
    if word == "gone":
        raise TaskGone("the task is kept no longer")
    if word == "refused":
        raise StateConflict("cannot_delete", view.state)
    with logs.bound(taskId=task_id, traceId=view.trace_id):
        _events.info("task.deleted", by=principal.owner)
        endings.free(task_id, view.request)
        storage.artifacts().delete(task_id)
    return view


def read_callbacks(task_id: str, *, principal: Principal) -> list[Callback]:
    """What others were told of a task, and how, the first callback first. Raises as `read_task`."""
    _read(task_id, principal=principal)
    return store().callbacks(task_id)


def replay_callbacks(
    task_id: str, *, principal: Principal, attempts: int, multiplier: float, callback_id: str = ""
) -> list[Replayed]:
    """Send one callback of a task anew, or without an id all of its last event.

    Raises: StateConflict `no_callback`, FieldInvalid for an unknown id; as `read_task`.
    """
    view = _act_on(task_id, principal=principal)
    found = [callback.key for callback in store().callbacks(task_id)]
    if not found:
        raise StateConflict("no_callback", view.state)
    if callback_id:
        chosen = [key for key in found if key.message_id(task_id) == callback_id]
    else:
        chosen = [key for key in found if key.event_key == found[-1].event_key]
    if not chosen:
        raise FieldInvalid("callbackId", NOT_A_CALLBACK)
    return [_replay(view, key, attempts=attempts, multiplier=multiplier) for key in chosen]


def replay_failed_callbacks(
    since: dt.datetime, *, principal: Principal, attempts: int, multiplier: float
) -> list[Replayed]:
    """Send anew all callbacks that have failed since then, of the principal's own tasks or, for an operator, of all.

    Raises: StateUnavailable.
    """
    replayed = []
    for task_id, key in store().failed_callbacks(round(since.timestamp() * 1000)):
        with suppress(TaskUnknown, TaskGone):
            view = _act_on(task_id, principal=principal)
            replayed.append(_replay(view, key, attempts=attempts, multiplier=multiplier))
    return replayed


def _replay(view: TaskView, key: CallbackKey, *, attempts: int, multiplier: float) -> Replayed:
    outbox.replay(view, key, attempts=attempts, multiplier=multiplier)
    return Replayed(view.task_id, view.trace_id, key.message_id(view.task_id))


def ping_endpoint(endpoint_id: str) -> Outcome:
    """Send a test call, once and now. Raises: FieldInvalid for an unknown endpoint."""
    return outbox.ping(endpoint_id, at=dt.datetime.now(dt.UTC))


def _act_on(task_id: str, *, principal: Principal) -> TaskView:
    """A task that the principal may change: its own, or any with the right to act."""
    return _may_act_on(_read(task_id, principal=principal), principal=principal)


def _may_act_on(view: TaskView, *, principal: Principal) -> TaskView:
    if view.request.owner != principal.owner and not principal.may(Right.OPS_ACT):
        raise TaskUnknown("there is no such task")
    return view


def open_file(task_id: str, *, principal: Principal) -> Artifact:
    """The finished file.

    Raises: StateConflict `file_not_ready`, TaskGone when the file is kept no longer; as `read_task`.
    """
    view = _read_succeeded(task_id, principal=principal)
    artifacts = storage.artifacts()
    if artifacts.size(view.object_key) != view.file_size or view.file_size is None:
        raise _lost(view, view.object_key)
    output = formats.get(view.request.format)
    return Artifact(
        file_name=view.file_name,
        content_type=output.content_type,
        size=view.file_size,
        sha256=view.sha256,
        epoch=view.epoch,
        trace_id=view.trace_id,
        read=lambda offset, length: artifacts.read(view.object_key, offset, length),
        link=lambda disposition: artifacts.link(
            view.object_key, content_type=output.content_type, disposition=disposition
        ),
    )


def read_manifest(task_id: str, *, principal: Principal) -> bytes:
    """The manifest of a finished file: JSON, UTF-8. Raises as `open_file`."""
    view = _read_succeeded(task_id, principal=principal)
    key = manifest.key(view.object_key)
    size = storage.artifacts().size(key)
    if size is None:
        raise _lost(view, key)
    return b"".join(storage.artifacts().read(key, 0, size))


def verify(task_id: str, *, principal: Principal) -> Proof:
    """Whether a finished file agrees with its manifest and the database. Reads all of it.

    Raises: StepBroken for a damaged manifest, SourceUnavailable, StoreUnavailable; as `open_file`.
    """
    text = read_manifest(task_id, principal=principal)
    return verifying.verify(_read_succeeded(task_id, principal=principal), text)


def _read_succeeded(task_id: str, *, principal: Principal) -> TaskView:
    view = read_task(task_id, principal=principal)
    if view.state is not State.SUCCEEDED:
        raise StateConflict("file_not_ready", view.state)
    return view


def _lost(view: TaskView, object_key: str) -> TaskGone:
    """An object that is not there, or not whole; before its time somebody must look."""
    if keeps_file(view):
        _events.error("file.lost", taskId=view.task_id, traceId=view.trace_id, objectKey=object_key)
    return TaskGone("the file is kept no longer")


def keeps_file(view: TaskView) -> bool:
    """Whether the file of a task must be there: one that is gone before its time is lost, and somebody must look."""
    expires_at = file_expires_at(view)
    return expires_at is not None and view.read_at < expires_at


def file_expires_at(view: TaskView) -> dt.datetime | None:
    """When the file of a task is removed; None while there is none."""
    return endings.file_expires_at(view)


def read_counters() -> Counters:
    """What `/metrics` shows. Raises: StateUnavailable."""
    return store().counters()


def redis_problems() -> list[str]:
    """What makes this Redis unfit to hold the only copy of the state. Raises: StateUnavailable."""
    return store().server_problems()


def ping() -> None:
    """Raises: StateUnavailable."""
    store().ping()


def sweep_once() -> None:
    """One full pass of the sweep, as a worker does at its start. Raises: StateUnavailable."""
    sweep.sweep(boot=True)
    # A command is no worker: hints are counted by those that stay.
    store().forget_worker(workers.current().name)


def purge(*, dry_run: bool = False) -> Purged:
    """Remove what has expired and what nobody knows. Raises: StateUnavailable, StoreUnavailable."""
    return purging.purge(dry_run=dry_run)


def forget(task_id: str, *, principal: Principal) -> None:
    """Remove an ended task with all that it holds, as if its time were over.

    Raises: ValueError for one that has not ended; as `cancel`.
    """
    view = _act_on(task_id, principal=principal)
    if not view.state.ended:
        raise ValueError(f"{task_id} is {view.state}")
    purging.forget(view)


def live_workers() -> int:
    """How many workers gave a sign of life lately. Raises: StateUnavailable."""
    return len(store().workers())


def diagnose() -> list[Finding]:
    """What `export_doctor` shows: whether everything that the service needs is there and fit. Raises nothing."""
    return diagnosis.diagnose()
