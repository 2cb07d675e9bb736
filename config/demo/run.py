"""Runs the demo: servers, orders, web and workers, then an export through the REST API or an open end."""

import datetime as dt
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from config.demo import environment, file_check, object_store, orders, servers
from config.demo.client import Api
from config.demo.place import DemoError, Place
from config.demo.processes import Supervisor
from config.demo.screen import Screen

WORKERS = {"lanes": 4, "fast": 1, "finish": 1}
_LOOK_EVERY_S = 0.2


@dataclass(frozen=True, slots=True)
class Options:
    rows: int
    days: int
    format: str
    database: str
    storage: str
    port: int
    data: Path


@dataclass(frozen=True, slots=True)
class Running:
    """What the started product can be asked."""

    place: Place
    supervisor: Supervisor
    api: Api
    wanted: orders.Wanted
    environment_file: str

    @property
    def url(self) -> str:
        return f"http://{self.api.host}"

    @property
    def ops_login(self) -> tuple[str, str]:
        """Name and password of the operator."""
        return environment.OPERATOR, self.place.passwords().operator


def rows_by_default(given: Mapping[str, Any]) -> int:
    """How many orders without --rows: an open demo takes those that are there."""
    found = orders.last_made(given["data"], database=given["database"], days=given["days"]) if given["serve"] else 0
    return found or 400_000


@contextmanager
def started(options: Options, screen: Screen) -> Iterator[Running]:
    """Everything is up inside the block and stopped, in order, behind it, also at Ctrl-C and SIGTERM.

    Raises: DemoError when something does not start.
    """
    place = Place(options.data)
    with place.locked() as lock, _interruptible():
        place.forget_pids()
        supervisor = Supervisor(place, lock=lock)
        place.pid_file("supervisor").write_text(f"{os.getpid()}\n", "ascii")
        try:
            yield _start(options, place, supervisor, screen)
        finally:
            _ignore_signals()
            screen.line("stopping …")
            supervisor.stop()
            place.pid_file("supervisor").unlink(missing_ok=True)


def _start(options: Options, place: Place, supervisor: Supervisor, screen: Screen) -> Running:
    bind = f"127.0.0.1:{_web_port(options.port)}"
    passwords = place.passwords()
    wanted = orders.wanted(rows=options.rows, days=options.days, today=dt.datetime.now(dt.UTC).date())
    screen.line(f"data directory {place.root}")
    valkey_url = servers.start_valkey(place, supervisor, passwords=passwords)
    database_url = _database_url(options, wanted, place, supervisor, screen, valkey_url=valkey_url)
    orders.note_made(place, wanted, database=options.database)
    values = environment.variables(
        place,
        passwords=passwords,
        valkey_url=valkey_url,
        database_url=database_url,
        store=_store(options, place, supervisor),
        web_bind=bind,
        rows=options.rows,
    )
    _start_product(supervisor, values)
    api = Api(bind, supervisor.tick)
    servers.wait_for("the web process", api.ready, supervisor=supervisor, log=place.log("web"))
    return Running(place, supervisor, api, wanted, environment.keep(place, values))


def _database_url(
    options: Options, wanted: orders.Wanted, place: Place, supervisor: Supervisor, screen: Screen, *, valkey_url: str
) -> str:
    def remade() -> None:
        if servers.forget_tasks(place, valkey_url):
            screen.line("other orders than last time: their exports, with the files, are removed")
        screen.line(f"making {wanted.rows:,} orders of {wanted.days} days in {options.database} …")

    if options.database == "sqlite":
        return orders.sqlite_url(place, wanted, remade=remade)
    passwords = place.passwords()
    port = servers.start_postgres(place, supervisor, passwords=passwords)
    return orders.postgres_url(port, wanted, passwords=passwords, remade=remade)


def _store(options: Options, place: Place, supervisor: Supervisor) -> dict[str, str]:
    """The variables that name the store; the server is started behind `forget_tasks`, which removes its files."""
    if options.storage == "folder":
        return {"EXPORTS_STORE_DIR": str(place.root / "files")}
    return object_store.start(place, supervisor, passwords=place.passwords())


def _start_product(supervisor: Supervisor, values: dict[str, str]) -> None:
    values = {**values, "EXPORTS_SUPERVISOR_PID": str(os.getpid())}
    web_config = Path(__file__).resolve().parents[1] / "gunicorn.py"
    supervisor.add("web", [sys.executable, "-m", "gunicorn", "--config", str(web_config)], environment=values)
    for group, count in WORKERS.items():
        for number in range(1, count + 1):
            supervisor.add(f"{group}-{number}", [sys.executable, "-m", "config.worker", group], environment=values)


def _web_port(port: int) -> int:
    """The port itself, or a free one for 0. Raises: DemoError when it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise DemoError(f"port {port}: {error.strerror}; choose another with --port, or 0 for a free one") from None
        return int(probe.getsockname()[1])


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, _on_signal), signal.signal(signal.SIGINT, _on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def _on_signal(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    """Stopping is bounded; a second Ctrl-C would leave processes behind."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@dataclass(frozen=True, slots=True)
class Result:
    """seconds: from the POST to `succeeded`. restarts: processes that ended meanwhile and were started again."""

    file: str
    rows: int
    seconds: float
    rows_per_second: float
    format: str
    database: str
    storage: str
    task_id: str
    bytes: int
    sha256: str
    restarts: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def export(running: Running, options: Options, screen: Screen) -> Result:
    """Submit, follow, download and check one export.

    Raises: DemoError when the task does not succeed or the file is not what was asked for.
    """
    wanted = running.wanted
    screen.line(f"exporting {wanted.first_day} … {wanted.last_day} as {options.format} through {running.url}")
    before = time.monotonic()
    accepted = running.api.submit(first_day=wanted.first_day, last_day=wanted.last_day, output=options.format)
    task = running.api.follow(accepted["progressUrl"], show=screen.progress)
    seconds = time.monotonic() - before
    if task["state"] != "succeeded":
        raise DemoError(f"{accepted['taskId']} {task['state']}: {task['error']}")
    file = running.api.download(task["downloadUrl"], running.place.root / "downloads", name=task["fileName"])
    rows = file_check.count_rows(file)
    if rows != wanted.rows:
        raise DemoError(f"{file}: {rows} rows, {wanted.rows} were made")
    return Result(
        file=str(file),
        rows=rows,
        seconds=round(seconds, 2),
        rows_per_second=round(rows / seconds),
        format=options.format,
        database=options.database,
        storage=options.storage,
        task_id=accepted["taskId"],
        bytes=file.stat().st_size,
        sha256=task["sha256"],
        restarts=running.supervisor.restarts,
    )


def serve(running: Running) -> None:
    """Keep everything running until Ctrl-C or SIGTERM."""
    while True:
        running.supervisor.tick()
        time.sleep(_LOOK_EVERY_S)
