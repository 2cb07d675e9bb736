"""Hints: messages that say "there is work of this class". Sent by name, so that no stage imports another for it.

A hint is never the truth: a lost one is sent again by the sweep, a double one finds nothing to claim. So no more
wait than the workers can take, however many tasks do.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import dramatiq

from exports.contracts import STEP_OF, QueueName, Step
from exports.state.store import store
from exports.telemetry import logs, trace
from exports.views import TaskView

_events = logs.events(__name__)

NOTIFY = "notify"
"""The class of callbacks, which are no step of a task; also their queue."""
FINISH = "finish"
"""The kind of work that render and upload are."""
_FOR_EACH_WORKER = 2
"""Hints of one class that may wait."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a hint says there is. step: names the actor. place: the broker's queue, whose workers can do it."""

    step: str
    place: str


def work(step: Step, *, queue: QueueName | None, spool: str) -> Work:
    """A step of a planned task: only workers on its spool can do it, and those of its queue are woken for its shards."""
    if step is Step.PLAN:
        return PLAN
    return Work(step, place(queue or QueueName.NORMAL if step is Step.SHARD else FINISH, spool))


def work_of(view: TaskView) -> Work:
    """The next step of a task."""
    return work(STEP_OF[view.phase], queue=view.queue, spool=view.spool)


def place(name: str, spool: str) -> str:
    """The broker's queue of one kind of work on one spool."""
    return f"{name}.{spool}"


PLAN = Work(Step.PLAN, "plan")
CALLBACKS = Work(NOTIFY, NOTIFY)


def send(what: Work, *, traceparent: str | None = None, count: int = 1) -> None:
    """Wake up to `count` workers, unless enough hints wait already.

    Never raises: the sweep makes good for what is lost here.
    """
    with _losing(what):
        _send(what, count=count, queued=waiting(what.place), traceparent=traceparent or trace.current.get())


def top_up(what: Work, *, due: int) -> None:
    """Send what `due` steps still lack of hints. Never raises: the next sweep makes good for what is lost here."""
    with _losing(what):
        queued = waiting(what.place)
        _send(what, count=due - queued, queued=queued, traceparent=trace.current.get())


def wake(what: Work) -> None:
    """Wake one worker, unless a hint waits for one already. Never raises."""
    top_up(what, due=1)


@contextmanager
def _losing(what: Work) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001  the broker's own errors differ by version; none may fail a step
        _events.warning("hint.lost", step=what.step, error=error)


def _send(what: Work, *, count: int, queued: int, traceparent: str | None) -> None:
    if count > max(0, _FOR_EACH_WORKER - queued):  # for so many there is room whoever is alive
        count = min(count, _FOR_EACH_WORKER * max(1, len(store().workers())) - queued)
    for _ in range(count):
        options = {"traceparent": traceparent}
        dramatiq.get_broker().enqueue(dramatiq.Message(what.place, what.step, (), {}, options))


def waiting(at: str) -> int:
    """Hints at a place that no worker has taken yet. Raises: what the broker raises when it does not answer."""
    return int(dramatiq.get_broker().waiting(at))  # type: ignore[attr-defined]  # config.broker.HintBroker


def all_waiting(spools: Collection[str]) -> dict[str, int] | None:
    """What `count_waiting` tells; None when the broker does not answer. For people who look."""
    try:
        return count_waiting(spools)
    except Exception as error:  # noqa: BLE001  the broker's own errors differ by version
        _events.warning("hints.uncounted", error=error)
        return None


def count_waiting(spools: Collection[str]) -> dict[str, int]:
    """Hints that wait by the kind of work, over these spools. Raises: as `waiting`."""
    there = {name: sum(waiting(place(name, spool)) for spool in spools) for name in (*QueueName, FINISH)}
    return {PLAN.place: waiting(PLAN.place), **there}
