"""A worker leaves before it grows old or fat."""

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dramatiq import Broker, Middleware
from dramatiq.broker import MessageProxy

_STATUS = Path("/proc/self/statm")


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
        elif resident_mb() > self._rss_mb:
            self._leave("memory")


def resident_mb() -> float:
    """Memory of this process now, in MiB; its peak where the system tells no more.

    Source: proc(5), statm; getrusage(2), whose unit is bytes on macOS and KiB elsewhere.
    """
    if _STATUS.exists():
        return int(_STATUS.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
