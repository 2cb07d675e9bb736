"""A worker leaves before it grows old or fat."""

from collections.abc import Callable
from typing import Any

from dramatiq import Broker, Middleware
from dramatiq.broker import MessageProxy

from exports.pipeline import memory


class RecycleWorker(Middleware):
    """Asks the process to leave after `slices` messages or above `rss_mb` of memory; its supervisor starts another."""

    def __init__(self, *, leave: Callable[[str], None], slices: int, rss_mb: int) -> None:
        self._leave = leave
        self._slices = slices
        self._rss_mb = rss_mb
        self._done = 0

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        self._done += 1
        if self._done >= self._slices:
            self._leave("slices")
        elif memory.resident_mb() > self._rss_mb:
            self._leave("memory")
