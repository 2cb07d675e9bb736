"""kill -9 of workers in the middle of an upload to a real S3 server: one object, nothing lost, hardly anything sent twice, nothing signed kept."""

import hashlib
import io
import json
import random
import sqlite3
import threading
import time
import urllib.request
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from config.demo.object_store import BUCKET
from tests import services
from tests.bench.common import FIRST, LAST, fill
from tests.conftest import running as started
from tests.processes import Site, running, wait_for
from tests.reliability.installation import keys
from tests.s3_proxy import COMPLETE, CREATE, LOST_REQUEST, PART, Call, Fault, S3Proxy

pytestmark = [pytest.mark.slow]

ROWS = 400_000
PARTS = 12
IN_FLIGHT = 4
TAKEN = (0, 2, 1, 3, 0)
"""How many parts the store takes before each kill; four more are on their way then."""


class Gate:
    """Lets so many parts through to the store and holds the others until it is opened; those are lost."""

    def __init__(self) -> None:
        self.held: list[Call] = []
        self._left = 0
        self._open = threading.Event()
        self._lock = threading.Lock()

    def allow(self, count: int) -> None:
        self._left, self.held, self._open = count, [], threading.Event()

    def open(self) -> None:
        self._open.set()

    def __call__(self, call: Call) -> Fault | None:
        with self._lock:
            if call.name != PART or self._left:
                self._left -= call.name == PART
                return None
            self.held.append(call)
            gate = self._open
        gate.wait(60)
        return LOST_REQUEST


@contextmanager
def site_over(
    s3: services.S3, proxy: S3Proxy, folder: Path, *, prefix: str, kind: str = "tests.kinds.LargeBulkKind", **more: str
) -> Iterator[Site]:
    """A site whose tasks are 61 MB in twelve parts, or those of another kind. more: settings."""
    settings = {name.upper(): str(value) for name, value in s3.settings(prefix=prefix, url=proxy.url).items()}
    (folder / "valkey").mkdir()
    with started(lambda _: services.start_valkey(folder / "valkey")) as valkey:
        site = Site(
            folder,
            valkey=valkey,
            database_url=f"sqlite:///{folder}/orders.sqlite3",
            KINDS=kind,
            RETRY_DELAYS_MS="500,1000,4000",
            **settings,
            **more,
        )
        with running(site):
            site.start_web()
            yield site


def test_five_kills_during_an_upload_cost_only_the_parts_that_were_on_their_way(
    s3: services.S3, proxy: S3Proxy, tmp_path: Path
) -> None:
    prefix = f"kills/{uuid.uuid4().hex}"
    proxy.decide = gate = Gate()
    with site_over(s3, proxy, tmp_path, prefix=prefix) as site:
        task_id = site.submit("2026-09-01", "2026-09-01")
        site.start_worker("fast")
        for count in TAKEN:
            gate.allow(count)
            worker = site.start_worker("lanes")
            wait_for(lambda: len(gate.held) == IN_FLIGHT or _has_ended(site, task_id), limit_s=90)
            assert len(gate.held) == IN_FLIGHT, (site.progress(task_id), proxy.calls)
            worker.kill()
            worker.wait()
            gate.open()
        assert proxy.count(COMPLETE) == 0
        gate.allow(PARTS)
        site.start_worker("lanes")
        found = site.wait(task_id, limit_s=120)
        assert found["state"] == "succeeded", found
        assert set(proxy.parts()) == set(range(1, PARTS + 1))
        assert len(proxy.parts()) == PARTS + len(TAKEN) * IN_FLIGHT
        assert proxy.count(CREATE) == 1
        objects = s3.objects(prefix)
        objects.pop("identity")
        assert [size for name, size in objects.items() if not name.endswith(".manifest.json")] == [found["fileSize"]]
        assert len(objects) == 2
        assert s3.open_uploads(prefix) == []
        link = f"http://127.0.0.1:{site.port}{found['downloadUrl']}"
        with urllib.request.urlopen(link, timeout=60) as answer:
            assert answer.url.startswith(proxy.url) and "X-Amz-Signature" in answer.url
            assert hashlib.sha256(answer.read()).hexdigest() == found["sha256"]
        for path in filter(Path.is_file, tmp_path.rglob("*")):
            data = path.read_bytes()
            assert b"X-Amz-Signature" not in data and s3.secret_key.encode() not in data, path


def _has_ended(site: Site, task_id: str) -> bool:
    return site.progress(task_id)["state"] not in ("queued", "running")


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("output", "spool"), [("csv", "folder"), ("xlsx", "folder"), ("csv", "s3"), ("xlsx", "s3")])
def test_400_000_orders_arrive_though_their_upload_is_killed_five_times_at_random(
    s3: services.S3, proxy: S3Proxy, tmp_path: Path, output: str, spool: str
) -> None:
    with closing(sqlite3.connect(tmp_path / "orders.sqlite3")) as connection:
        fill(connection.cursor(), vendor="sqlite", rows=ROWS)
        connection.commit()
    prefix = f"large/{uuid.uuid4().hex}"
    orders = "exports.kinds.orders.OrdersKind"
    with site_over(s3, proxy, tmp_path, prefix=prefix, kind=orders, SPOOL=spool) as site:
        task_id = site.submit(FIRST.isoformat(), LAST.isoformat(), output)
        site.start_worker("fast")
        proxy.decide = lambda call: (
            Fault(200, forward=True, wait_s=random.uniform(0.2, 2)) if call.name == PART else None
        )
        for _ in TAKEN:
            begun = len(proxy.parts())
            worker = site.start_worker("lanes")
            wait_for(lambda begun=begun: len(proxy.parts()) > begun or _has_ended(site, task_id), limit_s=300)  # type: ignore[misc]
            time.sleep(random.uniform(0, 1))
            assert not _has_ended(site, task_id), "the test looked too late"
            worker.kill()
            worker.wait()
        site.start_worker("lanes")
        found = site.wait(task_id, limit_s=300)
        assert (found["state"], found["processed"], found["drift"]["kind"]) == ("succeeded", ROWS, "exact"), found
        data = site.download(task_id)
        assert rows_of(data) == ROWS
        [key] = [name for name in s3.objects(prefix) if name.endswith(".manifest.json")]
        manifest = json.loads(s3.client().get_object(Bucket=BUCKET, Key=f"{prefix}/{key}")["Body"].read())
        assert hashlib.sha256(data).hexdigest() == manifest["file"]["sha256"] == found["sha256"]
        files = [name for name in s3.objects(prefix) if name.startswith("exp_") and name != key]
        assert files == [key.removesuffix(".manifest.json")]
        assert s3.open_uploads(prefix) == []
        parts = proxy.parts()
        twice = len(parts) - len(set(parts))
        print(f"{len(data):,} bytes of {output} over {spool}: {len(set(parts))} parts, {twice} of them sent again")  # noqa: T201  # a figure
        assert (set(parts), proxy.count(CREATE)) == (set(range(1, max(parts) + 1)), 1)
        assert twice <= len(TAKEN) * IN_FLIGHT


def rows_of(data: bytes) -> int:
    """Without the header."""
    if not data.startswith(b"PK"):
        return len(keys(data))
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        return book.read("xl/worksheets/sheet1.xml").count(b"<row") - 1


def test_a_cancel_during_an_upload_ends_in_ten_seconds_though_the_store_hangs(
    s3: services.S3, proxy: S3Proxy, tmp_path: Path
) -> None:
    prefix = f"cancel/{uuid.uuid4().hex}"
    hung: list[Call] = []

    def hang(call: Call) -> Fault | None:
        if call.name != PART or call.number <= 3:
            return None
        hung.append(call)
        return Fault(200, forward=True, wait_s=8)

    proxy.decide = hang
    with site_over(s3, proxy, tmp_path, prefix=prefix) as site:
        site.start_workers()
        task_id = site.submit("2026-09-01", "2026-09-01")
        wait_for(lambda: bool(hung), limit_s=60)
        before = time.monotonic()
        assert site.cancel(task_id) == 202
        assert site.wait(task_id, limit_s=20)["state"] == "cancelled"
        assert time.monotonic() - before < 10
        # The parts that hang arrive behind the end, and the store may take them.
        wait_for(lambda: not s3.open_uploads(prefix) and s3.objects(prefix).keys() <= {"identity"}, limit_s=60)
