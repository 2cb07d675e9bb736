"""What people do to tasks that are there: cancel, run again, delete."""

from collections.abc import Sequence
from dataclasses import dataclass

from exports import storage
from exports.conf import conf
from exports.contracts import Principal, State
from exports.errors import FieldInvalid, StateConflict, StepFailed, TaskGone
from exports.messages import NOT_A_REASON
from exports.pipeline import endings, hints, outbox
from exports.pipeline.specification import specify
from exports.service import access
from exports.service.tasks import read_task
from exports.state.keys import ref_of
from exports.state.store import store
from exports.telemetry import logs
from exports.views import TaskView

_events = logs.events(__name__)
REASON_MAX = 200
"""Most characters of a reason; `NOT_A_REASON` tells the number."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """task: as it was. file_removed: False where file or spool could not be removed yet; the sweep goes on with them."""

    task: TaskView
    file_removed: bool


def cancel(task_id: str, *, principal: Principal, reason: str = "") -> TaskView:
    """Accept a cancel, or find the task cancelled already. reason: kept in the task's history.

    Raises: StateConflict `cannot_cancel` for a task that has succeeded; FieldInvalid for a reason that is too long; as
    `read_task`.
    """
    view, by = access.act_on(task_id, principal=principal), signed(principal, reason)
    outbox.keep_untold(view)
    word = store().cancel(ref_of(task_id, view.request), by=by)
    if word == "refused":
        raise StateConflict("cannot_cancel", State.SUCCEEDED)
    with logs.bound(taskId=task_id, traceId=view.trace_id):
        _events.info("task.cancel", by=principal.owner, reason=reason or None, answer=word)
        endings.settle(task_id, view.request, word)
    return read_task(task_id, principal=principal)


def rerun(
    task_id: str,
    *,
    principal: Principal,
    from_scratch: bool = False,
    again: Sequence[str] = (),
    page_rows: int | None = None,
    reason: str = "",
) -> TaskView:
    """Queue a failed task again: what is missing, or everything.

    again: shards to read from their first row. page_rows: of the pages to come; None: as they were. reason: kept in the
    task's history.

    Raises: StateConflict `cannot_rerun` (not failed) or `specification_changed` (only from scratch); FieldInvalid for
    a shard that the task does not have or a page size out of bounds; as `read_task`.
    """
    view, by = access.act_on(task_id, principal=principal), signed(principal, reason)
    check_rerun(from_scratch, again=again, page_rows=page_rows)
    outbox.keep_untold(view)
    if from_scratch and view.state is State.FAILED:
        storage.spool().remove(task_id)
    word = store().rerun(
        ref_of(task_id, view.request),
        digest=specify(view.request).digest(),
        from_scratch=from_scratch,
        again=again,
        page_rows=page_rows or 0,
        by=by,
    )
    if word == "gone":
        raise TaskGone("the task is kept no longer")
    if word in ("foreign", "lost"):
        raise StateConflict("specification_changed", view.state)
    if word == "refused":
        raise StateConflict("cannot_rerun", view.state)
    if word == "unknown":
        raise unknown_shard(task_id, again)
    with logs.bound(taskId=task_id, traceId=view.trace_id):
        _events.info("task.rerun", by=principal.owner, reason=reason or None, scratch=from_scratch)
    queued = read_task(task_id, principal=principal)
    hints.send(hints.work_of(queued), traceparent=view.traceparent)
    return queued


def check_rerun(from_scratch: bool, *, again: Sequence[str], page_rows: int | None) -> None:
    """What `rerun` refuses whatever the task. Raises: FieldInvalid."""
    if from_scratch and (again or page_rows is not None):
        raise FieldInvalid("fromScratch", "reads every shard in pages of the usual size")
    if page_rows is not None and not conf().page_rows_min <= page_rows <= conf().page_rows:
        raise FieldInvalid("pageRows", f"must be from {conf().page_rows_min} to {conf().page_rows}")


def unknown_shard(task_id: str, again: Sequence[str]) -> FieldInvalid:
    """The refusal of shards of which at least one is not the task's."""
    known = {shard.shard_id for shard in store().shards(task_id)}
    lost = ", ".join(shard_id for shard_id in again if shard_id not in known)
    return FieldInvalid("shard", f"{lost} is not a shard of this task")


def _check_reason(reason: str) -> None:
    if len(reason) > REASON_MAX or not reason.isprintable():
        raise FieldInvalid("reason", NOT_A_REASON)


def signed(principal: Principal, reason: str) -> str:
    """Who acts, and why, as a task's history keeps it. Raises: FieldInvalid for a reason that is too long."""
    _check_reason(reason)
    return f"{principal.owner}: {reason}" if reason else principal.owner


def delete(task_id: str, *, principal: Principal, reason: str) -> Deleted:
    """Remove an ended task's file, manifest and spool at once, and leave who, when and why. Deleting it again is fine.

    Raises: StateConflict `cannot_delete` for one that has not ended; as `read_task`. Nothing was done then.
    """
    _check_reason(reason)
    view = access.may_act_on(access.find(task_id, principal=principal), principal=principal)
    outbox.keep_untold(view)
    word = store().delete(ref_of(task_id, view.request), by=principal.owner, reason=reason)
    if word == "gone":
        raise TaskGone("the task is kept no longer")
    if word == "refused":
        raise StateConflict("cannot_delete", view.state)
    with logs.bound(taskId=task_id, traceId=view.trace_id):
        _events.info("task.deleted", by=principal.owner)
        try:
            endings.free(task_id, view.request)
            storage.artifacts().delete(task_id)
        except (StepFailed, OSError) as error:
            _events.warning("cleanup.failed", error=error)
            return Deleted(view, file_removed=False)
    return Deleted(view, file_removed=True)
