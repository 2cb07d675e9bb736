"""Hints: messages that say "there is work of this class". Sent by name, so that no stage imports another for it.

A hint is never the truth: a lost one is sent again by the sweep, a double one finds nothing to claim. So no more
wait than the workers can take, however many tasks do.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dramatiq

from exports.contracts import Step
from exports.state.store import store
from exports.telemetry import logs, trace

_events = logs.events(__name__)

NOTIFY = "notify"
"""The class of callbacks, which are no step of a task."""
QUEUES: Mapping[str, str] = {
    Step.PLAN: "plan",
    Step.SHARD: "shard",
    Step.RENDER: "finish",
    Step.UPLOAD: "finish",
    NOTIFY: "notify",
}
"""The queue of each class; the actor has the name of the class."""
STEP_IN: Mapping[str, Step] = {QUEUES[step]: step for step in Step}
"""A class of steps of each queue; render and upload share one."""
_FOR_EACH_WORKER = 2
"""Hints of one class that may wait."""


def send(step: str, *, traceparent: str | None = None, count: int = 1) -> None:
    """Wake up to `count` workers, unless enough hints wait already.

    Never raises: the sweep makes good for what is lost here.
    """
    with _losing(step):
        _send(step, count=count, queued=waiting(step), traceparent=traceparent or trace.current.get())


def top_up(step: str, *, due: int) -> None:
    """Send what `due` steps still lack of hints. Never raises: the next sweep makes good for what is lost here."""
    with _losing(step):
        queued = waiting(step)
        _send(step, count=due - queued, queued=queued, traceparent=trace.current.get())


def wake(step: str) -> None:
    """Wake one worker, unless a hint waits for one already. Never raises."""
    top_up(step, due=1)


@contextmanager
def _losing(step: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001  the broker's own errors differ by version; none may fail a step
        _events.warning("hint.lost", step=str(step), error=error)


def _send(step: str, *, count: int, queued: int, traceparent: str | None) -> None:
    if count > max(0, _FOR_EACH_WORKER - queued):  # for so many there is room whoever is alive
        count = min(count, _FOR_EACH_WORKER * max(1, len(store().workers())) - queued)
    for _ in range(count):
        options = {"traceparent": traceparent}
        dramatiq.get_broker().enqueue(dramatiq.Message(QUEUES[step], str(step), (), {}, options))


def waiting(step: str) -> int:
    """Hints of a class that no worker has taken yet. Raises: what the broker raises when it does not answer."""
    return int(dramatiq.get_broker().waiting(QUEUES[step]))  # type: ignore[attr-defined]  # config.broker.HintBroker


def all_waiting() -> dict[Step, int] | None:
    """What `waiting` tells of each class; None when the broker does not answer. For people who look."""
    try:
        counts = {queue: waiting(step) for queue, step in STEP_IN.items()}
    except Exception as error:  # noqa: BLE001  the broker's own errors differ by version
        _events.warning("hints.uncounted", error=error)
        return None
    return {step: counts[QUEUES[step]] for step in Step}
