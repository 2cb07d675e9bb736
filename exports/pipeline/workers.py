"""The worker that this process is: its name, its lock that proves it alive, and whether it has been told to stop."""

import functools
import socket
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress

from exports import storage
from exports.conf import conf
from exports.contracts import QueueName
from exports.errors import StateUnavailable
from exports.pipeline import memory
from exports.state.reader import EQUAL
from exports.state.replies import WorkerSign
from exports.state.store import store

_FAST_SLICE_S = 1.0
stopping = threading.Event()
"""Set when the process shuts down: steps give their lease back at the next page."""


class Worker:
    """name: `<host>:<nonce>`; leases carry it, and where the spool can it is locked there for life.

    ranks: of the queues whose shards it reads, the lowest first.
    """

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}:{uuid.uuid4().hex}"
        self.group = ""
        self.ranks: Mapping[QueueName, int] = EQUAL
        self.busy = False
        self._alive = storage.spool().stay_alive(self.name)

    def join(self, group: str, *, serves: Sequence[Sequence[QueueName]]) -> None:
        """Work for a group. serves: queues, first those that come first; queues that stand together are equal."""
        self.group = group
        self.ranks = {queue: rank for rank, queues in enumerate(serves) for queue in queues}

    def slice_s(self) -> float:
        """How long it may work before others take their turn. Whoever plans is waited for by all that are small."""
        slice_s = conf().slice_ms / 1000
        return min(slice_s, _FAST_SLICE_S) if self.group == "fast" else slice_s

    def tell(self, *, busy: bool) -> None:
        """Tell the others whether this worker has work."""
        self.busy = busy
        self.beat()

    def beat(self) -> None:
        """Give a sign of life."""
        store().beat(self.name, WorkerSign(self.group, self.busy, storage.spool().id, round(memory.resident_mb())))

    def leave(self, reason: str) -> None:
        """Tell that this worker has ended, and why."""
        store().forget_worker(self.name, reason=reason)


@functools.cache
def current() -> Worker:
    """The one worker that this process is."""
    return Worker()


def tell_idle() -> None:
    """Tell that this worker waits for work, now or, if Redis is away, with the sweep's next sign of life."""
    with suppress(StateUnavailable):
        current().tell(busy=False)


def host_of(name: str) -> str:
    return name.partition(":")[0]


def idle(group: str) -> bool:
    """Whether a worker of a group waits for work on this spool."""
    spool = storage.spool().id
    return any(sign.group == group and sign.spool == spool and not sign.busy for sign in store().workers().values())
