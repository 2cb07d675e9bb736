"""One installation with everything real, and what can be done to it.

Redis and the database are reached through proxies that can cut a connection in the middle of an answer. A process that
dies is started again at the next `tick`, as a supervisor would.
"""

import datetime as dt
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psycopg
import pymysql
from redis import Redis

from exports.kinds.orders import sample
from tests import services
from tests.conftest import running as started
from tests.databases import OrdersDatabase
from tests.processes import ALL_GROUPS, WEB, Site, running
from tests.proxy import CuttingProxy
from tests.soak.ledger import Ledger
from tests.soak.schedule import Event

T = TypeVar("T")
ROWS = 12_000
DAYS = 10
FIRST = dt.date(2026, 9, 1)
OWNERS = ("ann", "bob", "eve")
LEASE_S = 3.0
_ZONE = dt.timezone(dt.timedelta(hours=8))
_SETTINGS = {
    "PAGE_ROWS": "100",
    "PAGE_ROWS_MIN": "50",
    "SLICE_MS": "2000",
    "STATEMENT_TIMEOUT_MS": "5000",
    "WORKER_SLICES": "100000",
    "SUBMITS_PER_MINUTE": "100000",
}


@dataclass(slots=True)
class Member:
    """A process that is started again when it ends."""

    group: str
    process: "subprocess.Popen[bytes]"


class World:
    """members: the processes, the web process last. starts: how many processes were started so far."""

    def __init__(
        self,
        site: Site,
        *,
        valkey: services.Valkey,
        redis_proxy: CuttingProxy,
        database: OrdersDatabase,
        database_proxy: CuttingProxy | None,
        ledger: Ledger,
    ) -> None:
        self.site = site
        self.ledger = ledger
        self.starts = 0
        self._valkey = valkey
        self._redis_proxy = redis_proxy
        self._database = database
        self._database_proxy = database_proxy
        self._undoing: list[threading.Timer] = []
        self.members = [Member(group, self._start(group)) for group in (*ALL_GROUPS, "web")]

    def happen(self, event: Event) -> bool:
        """Do what is due; whether it can be done here: SQLite has no connection to cut."""
        if self._database_proxy is None and event.name in ("cut_database", "end_sessions"):
            return False
        getattr(self, event.name)(event.dice)
        return True

    @property
    def workers(self) -> list[Member]:
        return [member for member in self.members if member.group != "web"]

    def tick(self) -> None:
        """Start again what has ended."""
        for member in self.members:
            if member.process.poll() is not None:
                self.site.forget(member.process)
                member.process = self._start(member.group)

    def calm(self) -> None:
        """Wait until no fault is in force any more."""
        for timer in self._undoing:
            timer.join()
        self._undoing.clear()
        self.tick()

    def redis(self) -> "Redis[bytes]":
        """The state, past the proxy."""
        return Redis.from_url(self._valkey.url(1))

    def broker(self) -> "Redis[bytes]":
        return Redis.from_url(self._valkey.url(0))

    def _start(self, group: str) -> "subprocess.Popen[bytes]":
        self.starts += 1
        if group == "web":
            return self.site.start_command("web", *WEB)
        return self.site.start_worker(group)

    # --- loads -----------------------------------------------------------------------------

    def submit(self, dice: Sequence[float]) -> None:
        first = int(dice[0] * DAYS)
        last = min(DAYS - 1, first + int(dice[1] * 6))
        body = {
            "requestId": f"soak-{len(self.ledger.tasks)}-{dice[3]:.9f}",
            "from": (FIRST + dt.timedelta(days=first)).isoformat(),
            "to": (FIRST + dt.timedelta(days=last)).isoformat(),
            "format": "csv" if dice[2] < 0.5 else "xlsx",
        }
        self.ledger.submit(choose(OWNERS, dice[3]), body)

    def duplicate(self, dice: Sequence[float]) -> None:
        """One of the last requests again, ten times at once."""
        tasks = list(self.ledger.tasks.values())[-20:]
        if tasks:
            task = choose(tasks, dice[0])
            self.ledger.submit(task.owner, task.body, times=10)

    def cancel(self, dice: Sequence[float]) -> None:
        if self.ledger.open:
            self.ledger.cancel(choose(self.ledger.open, dice[0]))

    # --- faults ----------------------------------------------------------------------------

    def kill_worker(self, dice: Sequence[float]) -> None:
        _signal(choose(self.workers, dice[0]), signal.SIGKILL)

    def end_worker(self, dice: Sequence[float]) -> None:
        _signal(choose(self.workers, dice[0]), signal.SIGTERM)

    def kill_web(self, dice: Sequence[float]) -> None:
        _signal(self.members[-1], signal.SIGKILL)

    def stop_worker(self, dice: Sequence[float]) -> None:
        """Stopped for up to three lives of a lease, then awake again."""
        member = choose(self.workers, dice[0])
        _signal(member, signal.SIGSTOP)
        process = member.process
        self._undo_after(dice[1] * 3 * LEASE_S, lambda: _signal(Member(member.group, process), signal.SIGCONT))

    def cut_redis(self, dice: Sequence[float]) -> None:
        self._redis_proxy.cut_after(int(dice[0] ** 3 * 4000))

    def cut_database(self, dice: Sequence[float]) -> None:
        assert self._database_proxy is not None
        self._database_proxy.cut_after(int(dice[0] ** 3 * 20_000))

    def end_sessions(self, dice: Sequence[float]) -> None:
        """All sessions of the product with the database, at once."""
        if self._database.vendor == "postgresql":
            self._database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'soak'")
        elif self._database.vendor == "mysql":
            for (number,) in self._database.execute(
                "SELECT id FROM information_schema.processlist WHERE user = 'soak'"
            ):
                with suppress(pymysql.err.OperationalError):  # it has just ended by itself
                    self._database.execute(f"KILL {number}")

    def kill_redis(self, dice: Sequence[float]) -> None:
        """Away for up to two seconds."""
        self.calm()  # one fault of the server at a time
        self._valkey.kill()
        self._undo_after(dice[0] * 2, self._valkey.start)

    def freeze_redis(self, dice: Sequence[float]) -> None:
        """No answer for up to five seconds: longer than a lease."""
        self.calm()
        pid = self._valkey.pid
        os.kill(pid, signal.SIGSTOP)
        self._undo_after(dice[0] * 5, lambda: os.kill(pid, signal.SIGCONT))

    def _undo_after(self, seconds: float, undo: Callable[[], None]) -> None:
        """In a thread of its own: a fault may hold up whoever waits for an answer."""
        timer = threading.Timer(seconds, undo)
        timer.daemon = True
        timer.start()
        self._undoing.append(timer)


def choose(things: Sequence[T], dice: float) -> T:
    """dice: in [0, 1)."""
    return things[int(dice * len(things))]


def _signal(member: Member, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(member.process.pid, number)


# --- making one -----------------------------------------------------------------------------------


@contextmanager
def opened(folder: Path, *, vendor: str) -> Iterator[World]:
    """An installation in a folder, over one database. Everything of it has ended afterwards."""
    with ExitStack() as stack:
        (folder / "valkey").mkdir()
        valkey = stack.enter_context(started(lambda _: services.start_valkey(folder / "valkey")))
        database, url, port = stack.enter_context(_DATABASES[vendor](folder))
        fill(database)
        redis_proxy = _proxied(stack, valkey.port)
        database_proxy = _proxied(stack, port) if port else None
        if database_proxy:
            url = url.replace(f":{port}/", f":{database_proxy.port}/")
        site = Site(folder, valkey=valkey, database_url=url, **_SETTINGS)
        tokens = {owner: hashlib.sha256(owner.encode()).hexdigest() for owner in OWNERS}
        site.environment |= _environment(redis_proxy.port, tokens)
        stack.enter_context(running(site))
        ledger = Ledger(site, tokens=tokens, expected=expected(database))
        yield World(
            site,
            valkey=valkey,
            redis_proxy=redis_proxy,
            database=database,
            database_proxy=database_proxy,
            ledger=ledger,
        )


def _proxied(stack: ExitStack, port: int) -> CuttingProxy:
    proxy = CuttingProxy(port)
    stack.callback(proxy.close)
    return proxy


def _environment(redis_port: int, tokens: dict[str, str]) -> dict[str, str]:
    rights = ["export.submit", "export.view"]
    listed = [
        {"owner": owner, "sha256": hashlib.sha256(token.encode()).hexdigest(), "rights": rights}
        for owner, token in tokens.items()
    ]
    urls = {"EXPORTS_BROKER_URL": 0, "EXPORTS_REDIS_URL": 1, "EXPORTS_CACHE_URL": 2}
    return {
        **{name: f"redis://127.0.0.1:{redis_port}/{number}" for name, number in urls.items()},
        "EXPORTS_TOKENS": json.dumps(listed),
        "EXPORTS_SUPERVISOR_PID": str(os.getpid()),
    }


def fill(database: OrdersDatabase) -> None:
    database.insert_rows(sample.generate(ROWS, seed=1, days=DAYS, first_day=FIRST))
    if database.vendor != "sqlite":
        sample.analyze(database.connection.cursor(), vendor=database.vendor)


def expected(database: OrdersDatabase) -> dict[str, list[tuple[str, str]]]:
    """Business day → (key, order number) of its rows in file order, as the database has them."""
    days: dict[str, list[tuple[str, str]]] = {
        (FIRST + dt.timedelta(days=number)).isoformat(): [] for number in range(DAYS)
    }
    for key, order_no, created in database.execute("SELECT id, order_no, created_at FROM orders ORDER BY id"):
        moment = created if isinstance(created, dt.datetime) else dt.datetime.fromisoformat(created)
        utc = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        days[utc.astimezone(_ZONE).date().isoformat()].append((str(key), str(order_no)))
    return days


Opened = Iterator[tuple[OrdersDatabase, str, int]]
"""The database for its writer, its URL for a reader, and the port to put a proxy before (0: none)."""


@contextmanager
def _sqlite(folder: Path) -> Opened:
    path = folder / "orders.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield OrdersDatabase(connection, vendor="sqlite", settings={}), f"sqlite:///{path}", 0


@contextmanager
def _postgres(_: Path) -> Opened:
    with started(services.start_postgres) as server:
        server.execute("CREATE DATABASE orders")
        with psycopg.connect(server.dsn("orders"), autocommit=True) as connection:
            database = OrdersDatabase(connection, vendor="postgresql", settings={})
            database.execute("CREATE ROLE soak LOGIN")
            database.execute("GRANT SELECT ON orders TO soak")
            yield database, f"postgres://soak@127.0.0.1:{server.port}/orders", server.port


@contextmanager
def _mariadb(_: Path) -> Opened:
    with started(services.start_mariadb) as server:
        server.execute("CREATE DATABASE orders")
        with closing(
            pymysql.connect(
                host="127.0.0.1", port=server.port, user="root", database="orders", charset="utf8mb4", autocommit=True
            )
        ) as connection:
            database = OrdersDatabase(connection, vendor="mysql", settings={})
            database.execute("CREATE USER soak@'127.0.0.1' IDENTIFIED BY 'soak'")
            database.execute("GRANT SELECT ON orders.orders TO soak@'127.0.0.1'")
            yield database, f"mysql://soak:soak@127.0.0.1:{server.port}/orders", server.port


_DATABASES = {"postgres": _postgres, "mariadb": _mariadb, "sqlite": _sqlite}
VENDORS = tuple(_DATABASES)
