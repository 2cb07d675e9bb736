"""One tiny installation that a sweep disturbs again and again: real Valkey, real orders, real disk, forked workers.

`run` performs a job in a process of its own, which a fault may kill or stop; `here` is the worker that outlives it and
goes on, with a new name each time. They share nothing but what the product itself keeps.
"""

import json
import logging
import os
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dramatiq
import redis
from django.db import connections

from config.broker import make_broker
from exports import service, storage
from exports.contracts import Format, State
from exports.errors import ExportError
from exports.pipeline import middleware, plan, render, shard, sweep, upload, workers
from exports.state.store import store
from exports.telemetry import logs
from exports.views import TaskView
from tests import pipeline, services
from tests.conftest import exports_settings

WINDOW = ("2026-09-01", "2026-09-03")
REQUEST = "the-one-request"
ACTORS = (plan.plan, shard.shard, render.render, upload.upload)
LIMIT_S = 30.0

Job = Callable[["World"], object]

_events = logs.events("tests.reliability")


class Child:
    """A forked process. `wait` answers its exit code, or the negative number of the signal that ended it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def wait(self, *, limit_s: float = LIMIT_S) -> int:
        deadline = time.monotonic() + limit_s
        pause = 0.0005
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                return -signal.SIGSTOP
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                self.kill()
                raise TimeoutError(f"process {self.pid} hangs")
            time.sleep(pause)
            pause = min(0.005, pause * 1.5)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


class World:
    """folder: holds `spool`, `files` and what the processes say. output, window: of the export."""

    def __init__(
        self,
        folder: Path,
        *,
        state: redis.Redis,
        output: Format = Format.CSV,
        window: tuple[str, str] = WINDOW,
    ) -> None:
        self.folder = folder
        self.state = state
        self.output = output
        self.window = window

    @contextmanager
    def beside(self, number: int, *, valkey: services.Valkey) -> Iterator["World"]:
        """Another one on the same orders, for a process that sweeps a part of the points. number: from 1."""
        folder = self.folder / str(number)
        folder.mkdir(exist_ok=True)
        state, hints = valkey.url(1 + 2 * number), valkey.url(2 + 2 * number)
        dramatiq.set_broker(make_broker(hints, middleware=middleware.for_sending()))
        with (
            redis.Redis.from_url(state) as client,
            exports_settings(redis_url=state, spool_dir=folder / "spool", store_dir=folder / "files"),
        ):
            yield World(folder, state=client, output=self.output, window=self.window)

    # --- processes -------------------------------------------------------------------------

    def reset(self) -> None:
        """As on the first day."""
        self.state.flushdb()
        for name in ("spool", "files"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.said.unlink(missing_ok=True)
        self.log.open("w").close()
        self._forget()

    def start(self, job: Job) -> Child:
        connections.close_all()
        pid = os.fork()
        if pid:
            return Child(pid)
        code = 1
        try:
            self._forget()
            with self.logged():
                job(self)
            code = 0
        except BaseException:  # noqa: BLE001  # a child must never return into the test runner
            with self.said.open("a") as file:
                file.write(traceback.format_exc())
        finally:
            os._exit(code)

    def run(self, job: Job) -> int:
        return self.start(job).wait()

    def here(self, job: Job) -> list[str]:
        """Perform a job as a new worker in this process; what was wrong with it."""
        self._forget()
        try:
            job(self)
        except Exception:  # noqa: BLE001  # told as a violation, so that the sweep goes on
            return [traceback.format_exc()]
        return []

    def _forget(self) -> None:
        """The worker that this process was is gone, with all that it kept in memory."""
        if workers.current.cache_info().currsize and (alive := workers.current()._alive) is not None:
            os.close(alive)
        for cached in (workers.current, storage.spool, store):
            cached.cache_clear()
        connections.close_all()

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Every log line of this process goes to the file of the world, and nowhere else."""
        handler = logging.FileHandler(self.log, encoding="utf-8")
        handler.setFormatter(logs.JsonLines())
        root = logging.getLogger()
        level, handlers = root.level, root.handlers[:]
        root.setLevel(logging.INFO)
        root.handlers[:] = [handler]
        try:
            yield
        finally:
            root.setLevel(level)
            root.handlers[:] = handlers
            handler.close()

    # --- what the world looks like -----------------------------------------------------------

    @property
    def log(self) -> Path:
        return self.folder / "log.jsonl"

    @property
    def said(self) -> Path:
        """What ended a process that nobody killed."""
        return self.folder / "said.txt"

    def lines(self) -> list[dict[str, Any]]:
        """Every log line so far; a kill may have cut the last one of a process."""
        found = []
        for line in self.log.read_text("utf-8").splitlines() if self.log.exists() else ():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    @property
    def task_id(self) -> str:
        """The one task that there is; empty before the first submit."""
        found = store().owned("ann")
        assert len(found) <= 1, found
        return found[0] if found else ""

    def view(self) -> TaskView | None:
        return store().read(self.task_id) if self.task_id else None


# --- what its processes do -----------------------------------------------------------------------


def submit(world: World) -> str:
    return pipeline.submit(*world.window, output=world.output, request_id=REQUEST)


def submit_and_work(world: World) -> None:
    submit(world)
    work(world)


def submit_and_work_off(world: World) -> None:
    """The client that got no answer asks again, and workers do the rest."""
    submit(world)
    work_off(world)


def work(world: World, *, rounds: int = 4) -> None:
    """What a worker of all classes does, for some rounds or until the task has ended and is told and cleaned up."""
    for _ in range(rounds):
        guarded(lambda: sweep.sweep(boot=True))
        for actor in ACTORS:
            guarded(actor.fn)
        if is_settled(world):
            return


def work_off(world: World) -> None:
    """Until the task is settled; for the process that goes on after the fault."""
    deadline = time.monotonic() + LIMIT_S
    while not is_settled(world):
        assert time.monotonic() < deadline, world.view()
        work(world, rounds=1)


def sweep_once(world: World) -> None:
    guarded(lambda: sweep.sweep(boot=True))


def guarded(call: Callable[[], object]) -> None:
    """As the broker's worker and the sweeper's thread do: an error ends a message or a pass, not the process."""
    try:
        call()
    except ExportError as error:
        _events.warning("worker.stopped", error=error)
    except Exception as error:  # noqa: BLE001  # the checker decides what may come out of a message
        _events.error("worker.broken", error=error, kind=type(error).__name__)


def is_settled(world: World) -> bool:
    """Whether the task has ended, and nothing is due any more; asked by the product's own calls, which may fail."""
    try:
        view = world.view()
        if view is None or not view.state.ended:
            return False
        now_ms = store().now_ms()
        return not store().due_cleanups(now_ms) and not store().untold(now_ms)
    except ExportError:
        return False


def must_view(world: World) -> TaskView:
    view = world.view()
    assert view is not None
    return view


def rerun_if_failed(world: World, *, from_scratch: bool = False) -> None:
    if must_view(world).state is State.FAILED:
        service.rerun(world.task_id, principal=pipeline.ANN, from_scratch=from_scratch)
