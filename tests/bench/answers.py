"""How fast the service answers: a poll, submits and cancels beside requests that hold threads, a small export beside
twenty large ones, the dry run of a year. The second half of `make bench`; `--only` takes some of the cases.

Times are those of a client on the same machine, over a connection that is kept, the client's own share included.
"""

import argparse
import datetime as dt
import hashlib
import http.client
import json
import os
import socket
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg

from tests.bench import common
from tests.bench.common import FIRST, LAST, PRODUCTION_TIMES

SMALL_DAY = LAST + dt.timedelta(days=2)
SMALL_ROWS = 2000
YEAR = (dt.date(2025, 1, 1), dt.date(2025, 12, 31))
YEAR_ROWS = 5_000_000
CROWD = 20
_KEPT_S = 10
PATH = "/api/orders/export"
_RIGHTS = ["export.submit", "export.view", "ops.read", "ops.act"]
_MANY = {"RUNNING_PER_OWNER": "100", "QUEUED_PER_OWNER": "1000", "SUBMITS_PER_MINUTE": "10000"}


class Caller:
    """One owner on one connection that is kept, as long as the server keeps it."""

    def __init__(self, port: int, owner: str) -> None:
        self._owner = owner
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._used_at = 0.0

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> dict[str, Any]:
        if time.monotonic() - self._used_at > _KEPT_S:
            self._connection.close()
        self._connection.request(
            method,
            path,
            None if body is None else json.dumps(body),
            {"Authorization": f"Bearer {token(self._owner)}", "Content-Type": "application/json", **headers},
        )
        with self._connection.getresponse() as answer:
            data = answer.read()
            self._used_at = time.monotonic()
            assert answer.status < 300, (answer.status, data)
            return dict(json.loads(data))

    def timed(self, method: str, path: str, body: object = None) -> float:
        """Milliseconds to the last byte of the answer."""
        began = time.perf_counter()
        self.ask(method, path, body)
        return (time.perf_counter() - began) * 1000

    def submit(self, first: dt.date, last: dt.date) -> str:
        return str(self.ask("POST", PATH, wanted(first, last))["taskId"])

    def export_s(self, first: dt.date, last: dt.date) -> float:
        """POST to `succeeded`."""
        began = time.perf_counter()
        task_id = self.submit(first, last)
        while (found := self.ask("GET", f"{PATH}/{task_id}"))["state"] in ("queued", "running"):
            time.sleep(0.005)
        assert found["state"] == "succeeded", found
        return time.perf_counter() - began


def wanted(first: dt.date, last: dt.date) -> dict[str, str]:
    return {"requestId": uuid.uuid4().hex, "from": first.isoformat(), "to": last.isoformat(), "format": "csv"}


def token(owner: str) -> str:
    return f"{owner}-".ljust(40, "t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000, help="rows of a large export")
    parser.add_argument("--only", default="poll,beside,crowd,year", help="cases, parted by commas")
    args = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    with (
        tempfile.TemporaryDirectory(prefix="exports-bench-", ignore_cleanup_errors=True) as folder,
        served(Path(folder), rows=args.rows) as (port, dsn),
    ):
        for name in args.only.split(","):
            CASES[name](port, dsn)


@contextmanager
def served(folder: Path, *, rows: int) -> Iterator[tuple[int, str]]:
    """A running service over PostgreSQL: its port, and the database for who adds to it."""
    from tests import services
    from tests.conftest import running as started
    from tests.processes import Site, running

    with ExitStack() as stack:
        postgres = stack.enter_context(started(services.start_postgres))
        postgres.execute("CREATE DATABASE orders")
        fill(postgres.dsn("orders"), rows)
        valkey = stack.enter_context(started(services.start_valkey))
        url = f"postgresql://postgres@{postgres.host}:{postgres.port}/orders"
        tokens = [
            {"owner": owner, "sha256": hashlib.sha256(token(owner).encode()).hexdigest(), "rights": _RIGHTS}
            for owner in ("ann", "bob")
        ]
        settings = {**PRODUCTION_TIMES, **_MANY, "TOKENS": json.dumps(tokens)}
        site = stack.enter_context(running(Site(folder, valkey=valkey, database_url=url, **settings)))
        site.start_web()
        site.start_workers()
        bob = Caller(site.port, "bob")
        for _ in range(5):
            bob.export_s(SMALL_DAY, SMALL_DAY)
        yield site.port, postgres.dsn("orders")


def fill(dsn: str, rows: int) -> None:
    """The sample, and a later day of its own for small exports."""
    from exports.kinds.orders import sample

    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.cursor()
        common.fill(cursor, vendor="postgresql", rows=rows)
        small = sample.generate(SMALL_ROWS, seed=2, days=1, first_day=SMALL_DAY)
        sample.insert(cursor, ((row[0] + 10**10, *row[1:]) for row in small), vendor="postgresql")
        cursor.execute("VACUUM (ANALYZE, FREEZE) orders")


# --- cases --------------------------------------------------------------------------------------------


def poll(port: int, dsn: str) -> None:
    bob = Caller(port, "bob")
    task_id = bob.submit(SMALL_DAY, SMALL_DAY)
    tell("poll", [bob.timed("GET", f"{PATH}/{task_id}") for _ in range(500)], must=5)


def beside(port: int, dsn: str) -> None:
    """Submits and cancels while half of the threads are held and lanes are at work."""
    ann, bob = Caller(port, "ann"), Caller(port, "bob")
    small = bob.submit(SMALL_DAY, SMALL_DAY)
    large = [ann.submit(FIRST, LAST) for _ in range(8)]
    file = ann.ask("GET", f"{PATH}/{_ended(ann, large[0])}")["downloadUrl"]
    held = [
        *(_hold(port, f"{PATH}/{large[-1]}", Prefer="wait=10") for _ in range(3)),
        *(_hold(port, f"{PATH}/{large[-1]}", Accept="text/event-stream") for _ in range(3)),
        *(_hold(port, file) for _ in range(2)),
    ]
    time.sleep(0.3)
    assert bob.ask("GET", f"{PATH}/{small}")["state"] == "succeeded"
    submits, cancels = [], []
    for _ in range(40):
        body = wanted(FIRST, LAST)
        began = time.perf_counter()
        task_id = bob.ask("POST", PATH, body)["taskId"]
        submits.append((time.perf_counter() - began) * 1000)
        cancels.append(bob.timed("POST", f"{PATH}/{task_id}/cancel"))
        time.sleep(0.02)
    tell("submit beside 8 held threads", submits, must=50)
    tell("cancel beside 8 held threads", cancels, must=100)
    for connection in held:
        connection.close()
    for task_id in large:
        _ended(ann, task_id)


def crowd(port: int, dsn: str) -> None:
    """One of 2,000 rows, alone and among twenty large ones of another owner."""
    ann, bob = Caller(port, "ann"), Caller(port, "bob")
    alone = [bob.export_s(SMALL_DAY, SMALL_DAY) * 1000 for _ in range(15)]
    large = [ann.submit(FIRST, LAST) for _ in range(CROWD)]
    among = []
    for _ in range(25):
        among.append(bob.export_s(SMALL_DAY, SMALL_DAY) * 1000)
        time.sleep(0.5)
    under_way = [ann.ask("GET", f"{PATH}/{task_id}")["state"] in ("queued", "running") for task_id in large]
    tell("2,000 rows alone", alone)
    tell(f"2,000 rows among {CROWD} large ones ({sum(under_way)} not over)", among, must=3 * statistics.median(alone))
    for task_id in large:
        if ann.ask("GET", f"{PATH}/{task_id}")["state"] in ("queued", "running"):
            ann.ask("POST", f"{PATH}/{task_id}/cancel")


def year(port: int, dsn: str) -> None:
    """The dry run of a year of 5,000,000 orders."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(_YEAR)
        connection.execute("VACUUM (ANALYZE, FREEZE) orders")
    ann = Caller(port, "ann")
    body = {key: value for key, value in wanted(*YEAR).items() if key != "requestId"}
    assert ann.ask("POST", f"{PATH}/validate", body)["rows"] == YEAR_ROWS
    tell(
        "dry run of 5,000,000 rows in a year",
        [ann.timed("POST", f"{PATH}/validate", body) for _ in range(5)],
        must=1000,
    )


_YEAR = f"""INSERT INTO orders SELECT n, 'SO' || n, timestamptz '{YEAR[0]} 00:00+08' + n * interval '{365 * 86400 / YEAR_ROWS} s',
  paid_at, status, customer_name, phone, address, sku, quantity, unit_price, total, currency, remark
  FROM generate_series(0, {YEAR_ROWS - 1}) AS n, (SELECT * FROM orders LIMIT 1) AS one"""
CASES: dict[str, Callable[[int, str], None]] = {"poll": poll, "beside": beside, "crowd": crowd, "year": year}


def tell(what: str, times_ms: Sequence[float], *, must: float | None = None) -> None:
    median, p95 = statistics.median(times_ms), statistics.quantiles(times_ms, n=20)[-1]
    limit = "" if must is None else f"   must {must:.0f}: {'kept' if median <= must else 'MISSED'}"
    print(f"{what:48} median {median:7.1f} ms   p95 {p95:7.1f}   max {max(times_ms):7.1f}{limit}", flush=True)


def _ended(caller: Caller, task_id: str) -> str:
    while caller.ask("GET", f"{PATH}/{task_id}")["state"] in ("queued", "running"):
        time.sleep(0.1)
    return task_id


def _hold(port: int, path: str, **headers: str) -> socket.socket:
    """A request whose answer nobody reads."""
    connection = socket.create_connection(("127.0.0.1", port))
    lines = [f"GET {path.removeprefix(f'http://127.0.0.1:{port}')} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"Authorization: Bearer {token('ann')}", *(f"{name}: {value}" for name, value in headers.items())]
    connection.sendall("\r\n".join([*lines, "", ""]).encode())
    return connection


if __name__ == "__main__":
    main()
