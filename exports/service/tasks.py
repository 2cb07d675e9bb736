"""Submit tasks, and read how they do."""

import datetime as dt
import hashlib
import math
from contextlib import suppress
from dataclasses import dataclass

from ulid import ULID

from exports import kinds
from exports.callbacks import Callback
from exports.conf import conf
from exports.contracts import TASK_PREFIX, ExportRequest, Principal, Right, State
from exports.errors import (
    FieldInvalid,
    LimitReached,
    RequestConflict,
    TaskDeleted,
    TaskGone,
    TaskUnknown,
    WindowTooLong,
)
from exports.pipeline import hints, sweep
from exports.pipeline.estimate import Estimate
from exports.pipeline.estimate import estimate as make_estimate
from exports.service import access
from exports.state.keys import ref_of
from exports.state.replies import LimitHit, moment
from exports.state.store import store
from exports.telemetry import logs, trace
from exports.views import AuditEntry, Event, ShardView, StepView, TaskView

_events = logs.events(__name__)
_REQUEST_ID_MAX = 255
_QUEUE_WAIT_S = 15
_MOST_CHANGED = 1000
_BATCH = 100


@dataclass(frozen=True, slots=True)
class Submitted:
    """created: False when the requestId had this task already."""

    task_id: str
    state: State
    created: bool
    trace_id: str


@dataclass(frozen=True, slots=True)
class Details:
    """shards: in file order. steps: plan, render and upload, where one is held or waits. The others: the oldest first."""

    task: TaskView
    shards: list[ShardView]
    steps: list[StepView]
    events: list[Event]
    audit: list[AuditEntry]
    callbacks: list[Callback]


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
    ref = ref_of(f"{TASK_PREFIX}{ULID()}", request)
    known = store().submit(ref, request, fingerprint=fingerprint, traceparent=traceparent)
    if known is None:
        with logs.bound(taskId=ref.id, traceId=trace.trace_id(traceparent)):
            _events.info("task.submitted", kind=request.kind, format=str(request.format), days=_days(request))
        hints.send(hints.PLAN, traceparent=traceparent)
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
    return _noticed(access.read(task_id, principal=principal), principal=principal)


def _noticed(view: TaskView, *, principal: Principal) -> TaskView:
    if view.cancel_requested_at is not None and sweep.complete_cancel(view):
        view = access.read(view.task_id, principal=principal)
    if is_stalled(view):
        sweep.mark_stalled(view)
    return view


def is_stalled(view: TaskView) -> bool:
    """Whether a running task has made no progress for longer than is in order."""
    return sweep.is_stalled(view)


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
    return moment(next_ms), store().read_all(ids)


def now() -> dt.datetime:
    """By the clock of the state. Raises: StateUnavailable."""
    return moment(store().now_ms())


def _views(ids: list[str], *, state: State | None, limit: int, principal: Principal) -> list[TaskView]:
    views: list[TaskView] = []
    for at in range(0, len(ids), _BATCH):
        for read in store().read_all(ids[at : at + _BATCH]):
            if len(views) == limit:
                return views
            with suppress(TaskUnknown, TaskGone):
                view = None if read.deleted else _noticed(read, principal=principal)
                if view and state in (None, view.state):
                    views.append(view)
    return views


def read_details(task_id: str, *, principal: Principal) -> Details:
    """A task with all that is kept beside it. Raises as `read_task`."""
    return Details(
        task=read_task(task_id, principal=principal),
        shards=store().shards(task_id),
        steps=store().whole_steps(task_id),
        events=store().events(task_id),
        audit=store().audit(task_id),
        callbacks=store().callbacks(task_id),
    )


def read_audit(task_id: str, *, principal: Principal) -> list[AuditEntry]:
    """Who did what to a task, oldest first; also to a deleted one. Raises as `read_task`."""
    access.find(task_id, principal=principal)
    return store().audit(task_id)
