"""What an operator does to tasks: first what would happen, then that, to up to a hundred at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from exports import service
from exports.callbacks import REPLAY_ATTEMPTS, REPLAY_MULTIPLIER
from exports.contracts import Principal, State
from exports.errors import ExportError, FieldInvalid, StateConflict, StateUnavailable
from exports.pipeline.specification import specify
from exports.state.store import store
from exports.views import TaskView

MOST = 100
"""Tasks that one action changes at most."""


class Action(StrEnum):
    RERUN = "rerun"
    SCRATCH = "rerun-from-scratch"
    CANCEL = "cancel"
    DELETE = "delete"
    REPLAY = "replay"


@dataclass(frozen=True, slots=True)
class Order:
    """What to do, and why. again, page_rows: of a rerun, see `service.rerun`."""

    action: Action
    reason: str = ""
    again: Sequence[str] = ()
    page_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """What an order would do to a task. refusal: why it would do nothing.

    shards, rows: to read. None: known only after planning. kept: rows that are not read again. callbacks: ids of
    those to send anew.
    """

    task: TaskView
    refusal: StateConflict | None
    shards: int | None = 0
    rows: int | None = 0
    kept: int = 0
    callbacks: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an order. task: as it is now, or was when it was deleted; None when it was refused.

    callbacks: ids of those that are sent anew. file_left: a deleted task's file is still to go, when the store is back.
    """

    task_id: str
    task: TaskView | None
    refusal: ExportError | None
    callbacks: Sequence[str] = ()
    file_left: bool = False


def preview(order: Order, task_ids: Sequence[str], *, principal: Principal) -> list[Effect]:
    """What would happen; changes nothing. Raises: as `service.read_task`, FieldInvalid for too many tasks and as `service.check_rerun`."""
    _check_count(task_ids)
    if order.action in (Action.RERUN, Action.SCRATCH):
        service.check_rerun(order.action is Action.SCRATCH, again=order.again, page_rows=order.page_rows)
    return [_effect(order, service.read_task(task_id, principal=principal)) for task_id in task_ids]


def carry_out(order: Order, task_ids: Sequence[str], *, principal: Principal) -> list[Outcome]:
    """Do it to each task; one that refuses does not keep the others. Raises: StateUnavailable, FieldInvalid."""
    _check_count(task_ids)
    return [_carry_out(order, task_id, principal) for task_id in task_ids]


def _check_count(task_ids: Sequence[str]) -> None:
    if len(task_ids) > MOST:
        raise FieldInvalid("tasks", f"must be at most {MOST}")


def _effect(order: Order, view: TaskView) -> Effect:
    if order.action is Action.CANCEL:
        return _effect_unless("cannot_cancel", view, refused=view.state in (State.SUCCEEDED, State.CANCELLED))
    if order.action is Action.DELETE:
        return _effect_unless("cannot_delete", view, refused=not view.state.ended)
    if order.action is Action.REPLAY:
        last = service.last_callbacks(view.task_id)
        return _effect_unless("no_callback", view, refused=not last, callbacks=last)
    if view.state is not State.FAILED:
        return Effect(view, StateConflict("cannot_rerun", view.state))
    if order.action is Action.SCRATCH or (view.phase is None and not order.again):
        return Effect(view, None, shards=None, rows=None)
    if view.phase is None:
        raise service.unknown_shard(view.task_id, order.again)
    if store().planned_as(view.task_id) != specify(view.request).digest():
        return Effect(view, StateConflict("specification_changed", view.state))
    return _rerun_effect(order, view)


def _effect_unless(code: str, view: TaskView, *, refused: bool, callbacks: Sequence[str] = ()) -> Effect:
    return Effect(view, StateConflict(code, view.state) if refused else None, callbacks=callbacks)


def _rerun_effect(order: Order, view: TaskView) -> Effect:
    shards = store().shards(view.task_id)
    again = [shard for shard in shards if shard.shard_id in order.again]
    if len(again) < len(set(order.again)):
        raise service.unknown_shard(view.task_id, order.again)
    open_ = [shard for shard in shards if shard.state != "done" and shard not in again]
    missing = sum(max(0, shard.planned - shard.rows_written) for shard in open_) + sum(shard.planned for shard in again)
    kept = sum(shard.rows_written for shard in shards if shard not in again)
    return Effect(view, None, shards=len(open_) + len(again), rows=missing, kept=kept)


def _carry_out(order: Order, task_id: str, principal: Principal) -> Outcome:
    try:
        return _do(order, task_id, principal)
    except StateUnavailable:
        raise
    except ExportError as error:
        return Outcome(task_id, None, error)


def _do(order: Order, task_id: str, principal: Principal) -> Outcome:
    if order.action is Action.REPLAY:
        return _replay(order, task_id, principal)
    if order.action is Action.CANCEL:
        return Outcome(task_id, service.cancel(task_id, principal=principal, reason=order.reason), None)
    if order.action is Action.DELETE:
        done = service.delete(task_id, principal=principal, reason=order.reason)
        return Outcome(task_id, done.task, None, file_left=not done.file_removed)
    task = service.rerun(
        task_id,
        principal=principal,
        from_scratch=order.action is Action.SCRATCH,
        again=order.again,
        page_rows=order.page_rows,
        reason=order.reason,
    )
    return Outcome(task_id, task, None)


def _replay(order: Order, task_id: str, principal: Principal) -> Outcome:
    replayed = service.replay_callbacks(
        task_id,
        principal=principal,
        attempts=REPLAY_ATTEMPTS,
        multiplier=REPLAY_MULTIPLIER,
        reason=order.reason,
    )
    task = service.read_task(task_id, principal=principal)
    return Outcome(task_id, task, None, callbacks=[one.callback_id for one in replayed])
