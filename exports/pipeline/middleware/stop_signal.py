"""A stopping worker tells its steps."""

from collections.abc import Callable

from dramatiq import Broker, Middleware, Worker


class StopSignal(Middleware):
    """Calls `stop` when the worker begins to stop.

    A step looks at what it sets after each page, releases its claim and returns; dramatiq's own notification
    would count as a failure and interrupt it at any place.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._stop()
