"""The outbox: what happened to tasks, and is to be told to others, becomes callbacks that are due.

Every end state puts its task on a list; whoever tells the end keeps one callback an endpoint, with its bytes, and takes
it off; the sweep does so for a process that died before. The stage `notify` delivers them. No actor here, so that
sweep and web may import it.
"""

import datetime as dt

from exports.callbacks import CallbackEvent, CallbackKey, Outcome
from exports.conf import conf
from exports.errors import FieldInvalid
from exports.pipeline import hints
from exports.state.keys import ref_of
from exports.state.store import store
from exports.telemetry import logs
from exports.views import TaskView
from exports.webhooks import delivery, payload
from exports.webhooks.endpoints import Endpoint, endpoints

_events = logs.events(__name__)


def wake() -> None:
    """Wake a worker if a callback is due."""
    if store().count_due_callbacks([endpoint.id for endpoint in endpoints()]):
        hints.wake(hints.CALLBACKS)


def keep_end(task_id: str) -> None:
    """Make callbacks of an end that is on the list, and take it off. Twice does no harm."""
    ended_ms = store().end_of(task_id)
    if ended_ms is None:
        return
    view = store().read(task_id) if endpoints() else None
    if view is not None and view.state.ended:
        event(view, CallbackEvent(view.state))
    store().settle_end(task_id, ended_ms)


def keep_untold(view: TaskView) -> None:
    """Before a rerun, a cancel or a deletion takes away what an end was: make callbacks of it, if nobody has yet."""
    if view.state.ended and store().end_of(view.task_id) is not None:
        event(view, CallbackEvent(view.state))


def event(view: TaskView, happened: CallbackEvent) -> None:
    """Keep an event of a task for every endpoint that wants it: at most once an epoch, whoever says it how often."""
    wanting = [endpoint for endpoint in endpoints() if endpoint.wants(happened, owner=view.request.owner)]
    if not wanting:
        return
    body = payload.make(view, happened)
    for endpoint in wanting:
        key = CallbackKey(view.epoch, happened, endpoint.id)
        word = store().keep_callback(view.task_id, key, body, limit=1 + len(conf().callback_delays_ms))
        if word in ("kept", "disabled"):
            with logs.bound(taskId=view.task_id, traceId=view.trace_id):
                _events.info("callback.kept", callbackId=key.message_id(view.task_id), answer=word)
    hints.wake(hints.CALLBACKS)


def replay(view: TaskView, key: CallbackKey, *, attempts: int, multiplier: float, by: str) -> None:
    """Send a callback anew: the same bytes and id, with attempts and pauses of its own. by: for the task's history."""
    store().replay_callback(ref_of(view.task_id, view.request), key, limit=attempts, multiplier=multiplier, by=by)
    with logs.bound(taskId=view.task_id, traceId=view.trace_id):
        _events.info("callback.replayed", callbackId=key.message_id(view.task_id), attempts=attempts)
    hints.wake(hints.CALLBACKS)


def ping(endpoint_id: str, *, at: dt.datetime) -> Outcome:
    """One test call that no task has to do with. Raises: FieldInvalid for an unknown endpoint."""
    for endpoint in endpoints():
        if endpoint.id == endpoint_id:
            message_id = f"ping-{at:%Y%m%dT%H%M%S%f}-{endpoint_id}"
            return send(endpoint, payload.ping(endpoint_id, at=at), message_id=message_id)
    raise FieldInvalid("endpoint", f"{endpoint_id} is not the id of an endpoint")


def send(endpoint: Endpoint, body: str, *, message_id: str, traceparent: str | None = None) -> Outcome:
    """One delivery under the settings in force."""
    return delivery.send(
        endpoint,
        body.encode(),
        message_id=message_id,
        timeout_s=conf().callback_timeout_ms / 1000,
        private=conf().callback_private_addresses,
        traceparent=traceparent,
    )
