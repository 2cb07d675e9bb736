"""Room for requests that hold a thread for long: waits, streams, downloads and dry runs together take no more than a part of them.

Counted in this process, as the threads are.
"""

import threading
from collections.abc import Generator, Iterator

from exports.conf import conf
from exports.errors import RequestRefused


class Busy(RequestRefused):
    """All places are taken."""

    code = "busy"


class Slot:
    """A place that is held until `release`, which may be called more than once."""

    def release(self) -> None:
        with _lock:
            _taken.discard(self)


_lock = threading.Lock()
_taken: set[Slot] = set()


def take() -> Slot | None:
    """A place, or None when all are taken."""
    with _lock:
        if len(_taken) >= conf().long_requests:
            return None
        slot = Slot()
        _taken.add(slot)
        return slot


class Held(Iterator[bytes]):
    """The chunks of an answer that holds a place until it is closed, also when it is never begun.

    Raises, when made: Busy.
    """

    def __init__(self, chunks: Generator[bytes, None, None]) -> None:
        slot = take()
        if slot is None:
            chunks.close()
            raise Busy
        self._slot = slot
        self._chunks = chunks

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        """Django calls this when the answer is sent or its reader is gone."""
        self._slot.release()
        self._chunks.close()
