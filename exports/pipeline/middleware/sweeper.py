"""The sweep in every worker: at its start, then again and again."""

import threading
from typing import Protocol

from django.db import connections
from dramatiq import Broker, Middleware, Worker

from exports.telemetry import logs

_events = logs.events(__name__)


class Sweep(Protocol):
    def __call__(self, *, boot: bool = False) -> None: ...


class Sweeper(Middleware):
    """Calls `sweep` in a thread of its own, so that it goes on beside a long step; a call may find nothing due.

    The first pass looks at every lease there is (`boot`); it is tried again until one has gone through.
    """

    def __init__(self, sweep: Sweep, *, every_s: float) -> None:
        self._sweep = sweep
        self._every_s = every_s
        self._stopped = threading.Event()
        self._booted = False

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        threading.Thread(target=self._run, name="sweeper", daemon=True).start()

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._pass()
            self._stopped.wait(self._every_s)
        connections.close_all()

    def _pass(self) -> None:
        try:
            self._sweep(boot=not self._booted)
            self._booted = True
        except Exception as error:  # noqa: BLE001  # the thread outlives whatever Redis or a store answers
            _events.warning("sweep.failed", error=error)
