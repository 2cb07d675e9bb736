"""One worker process: `python -m config.worker GROUP`.

One process, one thread, no children: a kill of its pid ends all of it. It is started by a supervisor, which starts
it again whenever it leaves. It leaves with 0 after SIGTERM, after so many slices or above so much memory, with 2 for
an unknown group, with 70 when one of its threads has died.
"""

import importlib
import os
import queue
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType

import dramatiq
from dramatiq.middleware import Middleware

from config import env, heap, parent, startup
from config.broker import HintBroker, make_broker
from exports.conf import conf
from exports.contracts import QueueName
from exports.errors import StateUnavailable
from exports.pipeline import hints, middleware
from exports.pipeline.middleware.sweeper import Sweeper
from exports.telemetry import logs, spans

STOP_LIMIT_MS = 25_000
"""How long a stopping worker waits for its step; a lease and a claim file make the rest harmless."""
LOOK_EVERY_S = 1.0
"""For threads that died, a supervisor that is gone, and workers of this host that are dead."""
UNKNOWN_GROUP = 2
THREAD_DIED = 70
"""EX_SOFTWARE of sysexits(3)."""

STAGES = (
    "exports.pipeline.plan",
    "exports.pipeline.shard",
    "exports.pipeline.render",
    "exports.pipeline.upload",
    "exports.pipeline.notify",
)
"""Modules that declare the actors."""


@dataclass(frozen=True, slots=True)
class Group:
    """What one kind of worker does.

    serves: queues whose shards it reads, first those that come first; queues that stand together are equal. helps: those
    that it reads when it finds nothing in its own, where it may. nice: added to the process's niceness; lanes leave the
    cores to the others.
    """

    plans: bool = False
    finishes: bool = False
    notifies: bool = False
    serves: tuple[tuple[QueueName, ...], ...] = ()
    helps: tuple[tuple[QueueName, ...], ...] = ()
    nice: int = 0

    def reads(self, *, help_others: bool) -> tuple[tuple[QueueName, ...], ...]:
        return self.serves + (self.helps if help_others else ())

    def places(self, spool: str, *, help_others: bool) -> set[str]:
        """The broker's queues that it consumes."""
        work: list[str] = [queue for queues in self.reads(help_others=help_others) for queue in queues]
        work += [hints.FINISH] if self.finishes else []
        found = {hints.place(name, spool) for name in work}
        found |= {hints.PLAN.place} if self.plans else set()
        return found | ({hints.CALLBACKS.place} if self.notifies else set())


_FAST, _NORMAL, _SLOW = QueueName
GROUPS = {
    "lanes": Group(serves=((_FAST,), (_NORMAL, _SLOW)), finishes=True, nice=10),
    "fast": Group(serves=((_FAST,),), plans=True),
    "normal": Group(serves=((_NORMAL,),), helps=((_FAST,), (_SLOW,)), finishes=True, nice=10),
    "slow": Group(serves=((_SLOW,),), helps=((_NORMAL,), (_FAST,)), finishes=True, nice=10),
    "finish": Group(finishes=True),
    "notify": Group(notifies=True, nice=10),
}

_events = logs.events("config.worker")  # `__name__` is `__main__` here


def main(arguments: Sequence[str], *, stages: Sequence[str] = STAGES) -> int:
    if len(arguments) != 1 or arguments[0] not in GROUPS:
        print(f"usage: python -m config.worker {' | '.join(GROUPS)}", file=sys.stderr)  # noqa: T201
        return UNKNOWN_GROUP
    parent.die_with(env.environment().supervisor_pid)
    heap.keep()
    _start_django()
    group = GROUPS[arguments[0]]
    os.nice(group.nice)
    return Runner(arguments[0], group=group, stages=stages).run()


def _start_django() -> None:
    import django  # needs the choice of settings below

    env.choose_settings("config.settings.worker")
    django.setup()
    startup.refuse_wrong_configuration()
    startup.refuse_unfit_redis()
    startup.start_tracing()


class Runner:
    """Runs one worker until it has a reason to leave."""

    def __init__(self, name: str, *, group: Group, stages: Sequence[str]) -> None:
        self._name = name
        self._group = group
        self._stages = stages
        # Its put() may be called from a signal handler; that of Event or Queue may not.
        self._reasons: queue.SimpleQueue[str] = queue.SimpleQueue()

    def run(self) -> int:
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        broker = self._make_broker()
        worker = dramatiq.Worker(broker, queues=self._declare_places(broker), worker_threads=1)
        worker.start()
        _events.info("worker.started", group=self._name, pid=os.getpid())
        reason = self._wait(worker)
        worker.stop(timeout=STOP_LIMIT_MS)
        self._say_goodbye(reason)
        broker.close()
        spans.stop()
        _events.info("worker.left", group=self._name, pid=os.getpid(), reason=reason)
        return 0

    def _say_goodbye(self, reason: str) -> None:
        """Who has left is not looked for. Where Redis is away, its silence tells the same later."""
        from exports.pipeline import workers

        with suppress(StateUnavailable):
            workers.current().leave(reason)

    def _make_broker(self) -> HintBroker:
        """The broker must be set before the modules of the actors are imported: they bind to it then."""
        broker = make_broker(env.environment().broker_url, middleware=self._middleware())
        dramatiq.set_broker(broker)
        for stage in self._stages:
            importlib.import_module(stage)
        broker.emit_after("process_boot")
        return broker

    def _declare_places(self, broker: HintBroker) -> set[str]:
        """The broker's queues that this worker consumes; which ones they are depends on its spool."""
        from exports import storage

        places = self._group.places(storage.spool().id, help_others=conf().lanes_help)
        for place in places:
            broker.declare_queue(place)
        return places

    def _middleware(self) -> list[Middleware]:
        from exports.pipeline import sweep, workers  # with the models that kinds need: after Django's start

        settings = conf()
        workers.current().join(self._name, serves=self._group.reads(help_others=settings.lanes_help))
        return middleware.for_workers(
            leave=self._reasons.put,
            slices=settings.worker_slices,
            rss_mb=settings.worker_rss_mb,
            stop=workers.stopping.set,
            extra=[Sweeper(sweep.sweep, every_s=min(LOOK_EVERY_S, settings.sweep_every_ms / 1000))],
        )

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self._reasons.put(signal.Signals(number).name.lower())

    def _wait(self, worker: dramatiq.Worker) -> str:
        while True:
            try:
                return self._reasons.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                _leave_if_a_thread_died(worker)
                parent.leave_if_it_died(env.environment().supervisor_pid)


def _leave_if_a_thread_died(worker: dramatiq.Worker) -> None:
    """A process whose consumer thread is gone looks healthy and does nothing."""
    for thread in (*worker.consumers.values(), *worker.workers):
        if not thread.is_alive():
            _events.error("worker.thread_died", thread=thread.name, kind=type(thread).__name__)
            os._exit(THREAD_DIED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
