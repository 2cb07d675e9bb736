"""Notify: callbacks that are due in, signed deliveries out. After the last stage, in processes of its own.

A delivery that fails is tried again after growing pauses, then it has failed and waits for a replay by hand. Nothing
here changes a task, and no stage waits for it.
"""

import random
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import dramatiq

from exports.callbacks import CallbackResult, Outcome
from exports.conf import conf
from exports.errors import StateUnavailable
from exports.pipeline import hints, outbox, workers
from exports.state.callbacks import CallbackClaim
from exports.state.store import store
from exports.telemetry import logs, spans, trace
from exports.webhooks.endpoints import Endpoint, endpoints

_events = logs.events(__name__)
_AT_ONCE = 32
_PER_ENDPOINT = 2
"""Deliveries under way; an endpoint that hangs takes this many threads and leaves the others theirs."""
_LOOK_EVERY_S = 0.2
_LEASE_TIMES = 3
"""The lease of an attempt, in delivery times: the look-up of the host's name comes on top."""
_JITTER = (0.8, 1.2)
_PAUSE_MAX_MS = 86_400_000
_random = random.SystemRandom()


def deliver_due() -> None:
    """Deliver until nothing is due or under way. What ends meanwhile is told too, however slow others are."""
    under_way: dict[Future[None], str] = {}
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="callback") as pool:
        while not workers.stopping.is_set():
            for endpoint, claim in _claims(Counter(under_way.values())):
                under_way[pool.submit(_deliver, endpoint, claim)] = endpoint.id
            if not under_way:
                return
            done, _ = wait(under_way, timeout=_LOOK_EVERY_S, return_when=FIRST_COMPLETED)
            for future in done:
                del under_way[future]


def _claims(busy: Counter[str]) -> list[tuple[Endpoint, CallbackClaim]]:
    """As many as there is room for. busy: deliveries under way by endpoint."""
    found: list[tuple[Endpoint, CallbackClaim]] = []
    for endpoint in endpoints():
        room = min(_PER_ENDPOINT - busy[endpoint.id], _AT_ONCE - busy.total() - len(found))
        for task_id, key in store().due_callbacks(endpoint.id, room) if room > 0 else ():
            claim = store().claim_callback(task_id, key, lease_ms=_LEASE_TIMES * conf().callback_timeout_ms)
            if isinstance(claim, CallbackClaim):
                found.append((endpoint, claim))
            elif claim == "failed":
                _events.error("callback.failed", taskId=task_id, callbackId=key.message_id(task_id), answer=claim)
    return found


def _deliver(endpoint: Endpoint, claim: CallbackClaim) -> None:
    """One attempt and its record. Whatever goes wrong here leaves the callback due again at the end of its lease."""
    message_id = claim.key.message_id(claim.task_id)
    with (
        spans.span("callback", parent=claim.traceparent, task_id=claim.task_id, attempt=claim.number),
        logs.bound(taskId=claim.task_id, callbackId=message_id, attempt=claim.number),
    ):
        try:
            outcome = outbox.send(endpoint, claim.body, message_id=message_id, traceparent=trace.current.get())
            pause_ms = pause_after(claim.tries, multiplier=claim.multiplier, retry_after_ms=outcome.retry_after_ms)
            word = store().record_callback(claim, outcome, pause_ms=pause_ms)
        except StateUnavailable as error:
            _events.warning("callback.not_recorded", error=error)
        except Exception as error:  # noqa: BLE001  # the thread's edge: one delivery must not end the others
            _events.error("callback.broken", error=error)
        else:
            _tell(outcome, word, pause_ms=pause_ms)


def pause_after(tries: int, *, multiplier: float, retry_after_ms: int) -> int:
    """Milliseconds until the next attempt: growing, not at once for all, and not before the receiver asked for.

    multiplier: of each pause against the one before it, after a replay; 0: the pauses of the settings.
    """
    delays = conf().callback_delays_ms
    planned = delays[0] * multiplier ** (tries - 1) if multiplier else delays[min(tries, len(delays)) - 1]
    pause = min(planned, _PAUSE_MAX_MS) * _random.uniform(*_JITTER)
    return round(max(pause, retry_after_ms))


def _tell(outcome: Outcome, word: str, *, pause_ms: int) -> None:
    if outcome.result is CallbackResult.DELIVERED:
        _events.info("callback.delivered", status=outcome.status, durationMs=outcome.duration_ms, answer=word)
        return
    spans.failed(outcome.result)
    tell = _events.error if word == "failed" else _events.warning
    tell(
        "callback.failed",
        result=outcome.result,
        status=outcome.status,
        reason=outcome.reason or None,
        durationMs=outcome.duration_ms,
        answer=word,
        pauseMs=pause_ms if word == "waiting" else None,
    )


@dramatiq.actor(actor_name=hints.NOTIFY, queue_name="notify")
def notify() -> None:
    try:
        workers.current().tell(busy=True)
        deliver_due()
    except StateUnavailable as error:
        _events.warning("state.unavailable", step=hints.NOTIFY, error=error)
    finally:
        workers.tell_idle()
