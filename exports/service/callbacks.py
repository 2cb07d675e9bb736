"""What others were told of a task, and telling it again."""

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass

from exports.callbacks import Callback, CallbackKey, Outcome
from exports.contracts import Principal
from exports.errors import FieldInvalid, StateConflict, TaskGone, TaskUnknown
from exports.messages import NOT_A_CALLBACK
from exports.pipeline import outbox
from exports.service import access
from exports.service.acting import signed
from exports.state.store import store
from exports.views import TaskView


@dataclass(frozen=True, slots=True)
class Replayed:
    """A callback that is sent anew."""

    task_id: str
    trace_id: str
    callback_id: str


def read_callbacks(task_id: str, *, principal: Principal) -> list[Callback]:
    """What others were told of a task, and how, the first callback first. Raises as `read_task`."""
    access.read(task_id, principal=principal)
    return store().callbacks(task_id)


def replay_callbacks(
    task_id: str, *, principal: Principal, attempts: int, multiplier: float, callback_id: str = "", reason: str = ""
) -> list[Replayed]:
    """Send one callback of a task anew, or without an id all of its last event. reason: kept in the task's history.

    Raises: StateConflict `no_callback`, FieldInvalid for an unknown id or a reason that is too long; as `read_task`.
    """
    view, by = access.act_on(task_id, principal=principal), signed(principal, reason)
    found = [callback.key for callback in store().callbacks(task_id)]
    if not found:
        raise StateConflict("no_callback", view.state)
    if callback_id:
        chosen = [key for key in found if key.message_id(task_id) == callback_id]
    else:
        chosen = _of_last_event(found)
    if not chosen:
        raise FieldInvalid("callbackId", NOT_A_CALLBACK)
    return [_replay(view, key, attempts=attempts, multiplier=multiplier, by=by) for key in chosen]


def last_callbacks(task_id: str) -> list[str]:
    """Ids of what `replay_callbacks` would send anew: the callbacks of the last event of a task that was read."""
    found = [callback.key for callback in store().callbacks(task_id)]
    return [key.message_id(task_id) for key in _of_last_event(found)]


def _of_last_event(found: list[CallbackKey]) -> list[CallbackKey]:
    return [key for key in found if key.event_key == found[-1].event_key]


def replay_failed_callbacks(
    since: dt.datetime, *, principal: Principal, attempts: int, multiplier: float
) -> list[Replayed]:
    """Send anew all callbacks that have failed since then, of the principal's own tasks or, for an operator, of all.

    Raises: StateUnavailable.
    """
    replayed = []
    for task_id, key in store().failed_callbacks(round(since.timestamp() * 1000)):
        with suppress(TaskUnknown, TaskGone):
            view = access.act_on(task_id, principal=principal)
            replayed.append(_replay(view, key, attempts=attempts, multiplier=multiplier, by=principal.owner))
    return replayed


def _replay(view: TaskView, key: CallbackKey, *, attempts: int, multiplier: float, by: str) -> Replayed:
    outbox.replay(view, key, attempts=attempts, multiplier=multiplier, by=by)
    return Replayed(view.task_id, view.trace_id, key.message_id(view.task_id))


def ping_endpoint(endpoint_id: str) -> Outcome:
    """Send a test call, once and now. Raises: FieldInvalid for an unknown endpoint."""
    return outbox.ping(endpoint_id, at=dt.datetime.now(dt.UTC))
