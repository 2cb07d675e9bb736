"""One installation under fire: real processes whose roads to Redis and the database a test may cut and slow down."""

import contextlib
import csv
import io
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import openpyxl
import psycopg

from tests import services
from tests.processes import Site, wait_for
from tests.proxy import CuttingProxy
from tests.six_days import DATABASE, ROWS, orders

WINDOW = ("2026-09-01", "2026-09-06")
GROUPS = ("fast", "lanes", "lanes", "finish")
PATIENT = {
    "PAGE_ROWS": "50",
    "PAGE_ROWS_MIN": "20",
    # Lanes read, and the worker that plans does not.
    "FAST_ROWS": "100",
    "SUBMITS_PER_MINUTE": "100000",
    "WORKER_SLICES": "100000",
    # Chance must neither use up the tries of a page nor make poison of it: tests of their own count those.
    "RETRY_DELAYS_MS": ",".join(["100"] * 20),
    "RECOVERIES_MAX": "100",
}


class Road(CuttingProxy):
    """A proxy whose connections can be cut at any moment. latency_s: before each piece of an answer."""

    def __init__(self, port: int, *, latency_s: float = 0) -> None:
        self.latency_s = latency_s
        self._open: set[socket.socket] = set()
        super().__init__(port)

    def cut(self) -> int:
        """Cut all connections; how many there were."""
        found = [connection for connection in list(self._open) if connection.fileno() >= 0]
        for connection in found:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        return len(found)

    def close(self) -> None:
        self.cut()
        super().close()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        self._open.add(client)
        try:
            super()._forward(client, server)
        finally:
            self._open.discard(client)

    def _pass(self, data: bytes, answer: bool, target: socket.socket) -> bool:
        if answer and self.latency_s:
            time.sleep(self.latency_s)
        return super()._pass(data, answer, target)


class Installation(Site):
    """A site between two roads, with a supervisor: `revive` starts again what has ended."""

    def __init__(self, folder: Path, *, valkey: services.Valkey, database_url: str, **settings: str) -> None:
        address, _, name = database_url.rpartition("/")
        host, _, port = address.rpartition(":")
        self.database = Road(int(port), latency_s=0.01)
        self.redis = Road(valkey.port)
        urls = {
            f"{name}_URL": f"redis://127.0.0.1:{self.redis.port}/{number}"
            for number, name in enumerate(("BROKER", "REDIS", "CACHE"))
        }
        slow_url = f"{host}:{self.database.port}/{name}"
        super().__init__(folder, valkey=valkey, database_url=slow_url, **{**PATIENT, **urls, **settings})
        self.roles: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, groups: Iterable[str] = GROUPS) -> None:
        self.roles = {f"{group}-{number}": self.start_worker(group) for number, group in enumerate(groups)}
        self.roles["web"] = self.start_web()

    def revive(self) -> None:
        """Start again every process that has ended, as a supervisor does at once."""
        for role, process in self.roles.items():
            if process.poll() is not None:
                self.forget(process)
                group = role.partition("-")[0]
                self.roles[role] = self.start_web() if group == "web" else self.start_worker(group)

    def workers(self, group: str = "") -> list[subprocess.Popen[bytes]]:
        return [process for role, process in self.roles.items() if role != "web" and role.startswith(group)]

    def everyone_lives(self) -> bool:
        return all(process.poll() is None for process in self.roles.values())

    def state(self, task_id: str) -> str:
        """Empty while nobody can tell."""
        status, _, answer = self.get(f"/api/orders/export/{task_id}")
        return str(json.loads(answer)["state"]) if status == 200 else ""

    def ended(self, task_id: str) -> bool:
        return self.state(task_id) in ("succeeded", "failed", "cancelled")

    def rows_counted(self) -> int:
        """`export_rows_processed_total`: rows of committed pages, of all tasks."""
        text = self.get("/metrics")[2].decode()
        [line] = [line for line in text.splitlines() if line.startswith("export_rows_processed_total ")]
        return int(float(line.split()[1]))

    def check(self, task_id: str) -> None:
        """The task succeeds, and its file holds every order once, in order."""
        wait_for(lambda: self.ended(task_id), limit_s=90)
        found = self.progress(task_id)
        assert (found["state"], found["processed"], found["drift"]["kind"]) == ("succeeded", ROWS, "exact"), found
        data = self.download(task_id)
        assert keys(data) == expected_keys()

    def submit_slow(self, output: str = "csv") -> str:
        """The id of a task that has read some of its rows, and not most of them."""
        for _ in range(5):
            task_id = self.submit(*WINDOW, output)
            wait_for(lambda task_id=task_id: self.progress(task_id)["processed"] > ROWS / 20, limit_s=60)  # type: ignore[misc]
            if self.progress(task_id)["processed"] < ROWS * 0.7:
                return task_id
            self.check(task_id)
        raise AssertionError("the test looked too late, five times")

    def events(self, name: str, task_id: str = "") -> list[dict[str, Any]]:
        """Lines of the log, of one task or of all."""
        found = [line for line in self.logs() if line["event"] == name]
        return [line for line in found if not task_id or line["taskId"] == task_id]

    def close(self) -> None:
        self.kill_all()
        self.database.close()
        self.redis.close()


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A frozen process."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def locked_orders(postgres: services.Postgres) -> Iterator[None]:
    """Every read of the orders table hangs for the block."""
    with psycopg.connect(postgres.dsn(DATABASE)) as connection:
        connection.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")
        yield
        connection.rollback()


def repeat_until(ended: Callable[[], bool], act: Callable[[], object], *, pause: Callable[[], float], most: int) -> int:
    """Act again and again, at most so often, until the condition holds; how often it was."""
    for count in range(most):
        time.sleep(pause())
        if ended():
            return count
        act()
    return most


@contextlib.contextmanager
def installation(
    valkey: Callable[[Path], services.Valkey] = services.start_valkey, **settings: str
) -> Iterator[Installation]:
    """An installation in a folder of its own, with a Valkey of its own; nothing of it is started but Valkey."""
    with tempfile.TemporaryDirectory(prefix="exports-", ignore_cleanup_errors=True) as folder:
        (Path(folder) / "valkey").mkdir()
        server = valkey(Path(folder) / "valkey")
        site = Installation(Path(folder), valkey=server, **settings)
        try:
            yield site
        finally:
            site.close()
            server.stop()


def expected_keys() -> list[int]:
    """In file order; the sample's keys rise with their days."""
    return [row[0] for row in orders()]


def keys(data: bytes) -> list[int]:
    """Of a CSV or XLSX file, in file order."""
    if data.startswith(b"PK"):
        [sheet] = openpyxl.load_workbook(io.BytesIO(data), read_only=True).worksheets
        return [int(row[0]) for row in sheet.iter_rows(min_row=2, max_col=1, values_only=True)]
    return [int(row[0]) for row in list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))[1:]]
