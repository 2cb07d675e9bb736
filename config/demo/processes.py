"""A small supervisor: starts processes, starts again what ends, stops all in order.

Children get a signal from the kernel when this process dies, however it dies (`config.parent`). That works only for
children that its main thread starts, so everything here runs in one thread and the caller gives it time by `tick`.
"""

import functools
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from config import env, parent
from config.demo.place import Place

STOP_LIMIT_S = 12.0
"""How long a stopping process may take before it is killed; nothing is lost by that."""
_SHORT_LIFE_S = 2.0
_PAUSE_S = 1.0
_LOOK_EVERY_S = 0.05
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(slots=True)
class Child:
    """One process and how to start it again. server: others need it, so it stops after them."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    server: bool
    stop_signal: signal.Signals
    process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)
    started_at: float = field(default=0.0, init=False)

    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None


class Supervisor:
    """restarts: how often a process was started again."""

    def __init__(self, place: Place, *, lock: int) -> None:
        self.restarts = 0
        self._place = place
        self._lock = lock
        self._children: list[Child] = []

    def add(
        self,
        name: str,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        server: bool = False,
        stop_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Start a process and keep it running. environment: what this product reads."""
        child = Child(name, command, env.for_child(environment or {}), server, stop_signal)
        self._children.append(child)
        self._start(child)

    def tick(self) -> None:
        """Start again what has ended. Call it several times a second."""
        now = time.monotonic()
        for child in self._children:
            pause = _PAUSE_S if child.started_at and now - child.started_at < _SHORT_LIFE_S else 0.0
            if child.ended() and now >= child.started_at + pause:
                self.restarts += 1
                self._start(child)

    def stop(self) -> None:
        """End everything: first what uses the servers, then the servers."""
        for server in (False, True):
            children = [child for child in self._children if child.server is server]
            for child in children:
                _send(child, child.stop_signal)
            _wait(children)
            for child in children:
                self._place.pid_file(child.name).unlink(missing_ok=True)

    def _start(self, child: Child) -> None:
        with self._place.log(child.name).open("ab") as log:
            child.process = subprocess.Popen(  # noqa: S603  # commands are this package's own
                child.command,
                cwd=_ROOT,
                env=child.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Not the terminal's group: Ctrl-C must reach the supervisor alone, which stops in order.
                start_new_session=True,
                pass_fds=[self._lock],
                # Safe here: this process has one thread.
                preexec_fn=functools.partial(parent.die_with, os.getpid()),  # noqa: PLW1509
            )
        child.started_at = time.monotonic()
        self._place.pid_file(child.name).write_text(f"{child.process.pid}\n", "ascii")


def _send(child: Child, number: signal.Signals) -> None:
    if child.process is not None and not child.ended():
        child.process.send_signal(number)


def _wait(children: Sequence[Child]) -> None:
    deadline = time.monotonic() + STOP_LIMIT_S
    while not all(child.ended() for child in children):
        if time.monotonic() >= deadline:
            for child in children:
                _send(child, signal.SIGKILL)
        time.sleep(_LOOK_EVERY_S)
