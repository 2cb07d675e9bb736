"""The worker that this process is: its name, its lock that proves it alive, and whether it has been told to stop."""

import functools
import socket
import threading
import uuid
from contextlib import suppress

from exports import storage
from exports.errors import StateUnavailable
from exports.state.store import store

stopping = threading.Event()
"""Set when the process shuts down: steps give their lease back at the next page."""


class Worker:
    """name: `<host>:<nonce>`; leases carry it, and where the spool can it is locked there for life."""

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}:{uuid.uuid4().hex}"
        self.group = ""
        self.busy = False
        self._alive = storage.spool().stay_alive(self.name)

    def tell(self, *, busy: bool) -> None:
        """Tell the others whether this worker has work."""
        self.busy = busy
        self.beat()

    def beat(self) -> None:
        """Give a sign of life."""
        store().beat(self.name, self.group, busy=self.busy)


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
    """Whether a worker of a group waits for work."""
    return any(found == group and not busy for found, busy in store().workers().values())
