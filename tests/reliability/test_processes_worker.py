"""Faults of single workers: one that a page kills, one whose clock is wrong; and disks that are full."""

import datetime as dt
import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exports import service
from exports.contracts import Phase, State
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.kinds import FlakyOrders
from tests.processes import wait_for
from tests.reliability.deadly import DEADLY_DAY, LAST_HARMLESS_KEY
from tests.reliability.installation import (
    PATIENT,
    ROWS,
    WINDOW,
    expected_keys,
    installation,
    keys,
    orders,
)

WITH_ANOTHER_CLOCK = """
import os, sys
library, offset, group = sys.argv[1:]
os.environ.update(LD_PRELOAD=library, FAKETIME=offset, FAKETIME_DONT_FAKE_MONOTONIC="1")
os.execv(sys.executable, [sys.executable, "-m", "config.worker", group])
"""


def test_a_page_that_kills_its_worker_each_time_fails_the_task_by_name(orders_url: str) -> None:
    """Three workers, then no more: the task does not wear out whoever comes after them."""
    with installation(database_url=orders_url, RECOVERIES_MAX="3") as site:
        site.start(["fast"])
        task_id = site.submit(*WINDOW)
        deadly = [site.start_worker("lanes", KINDS="tests.reliability.deadly.DeadlyOrders") for _ in range(4)]
        found = site.wait(task_id)
        codes = [process.poll() for process in deadly]
        assert (codes.count(-signal.SIGKILL), codes.count(None)) == (3, 1)
        assert (found["state"], found["errorCode"]) == ("failed", "poison")
        assert found["errorDetail"] == {
            "phase": "fetch",
            "shardId": DEADLY_DAY.isoformat(),
            "page": 200 // int(PATIENT["PAGE_ROWS"]) + 1,
            "cursor": str(LAST_HARMLESS_KEY),
            "attempts": 3,
            "retryable": False,
        }
        answer = site.call("GET", f"/api/orders/export/{task_id}", **{"Accept-Language": "en"})[2]
        assert f"after id {LAST_HARMLESS_KEY}" in json.loads(answer)["error"]

        site.start_worker("lanes")
        assert site.call("POST", f"/api/orders/export/{task_id}/rerun")[0] in (200, 202)
        site.check(task_id)


def test_workers_whose_clocks_are_wrong_harm_nothing(orders_url: str) -> None:
    """Leases, pauses and the times of a task are by the clock of Redis, `asOf` by that of the database."""
    library = clock_library()
    with installation(database_url=orders_url) as site:
        site.start([])
        began = dt.datetime.now(dt.UTC)
        for group, offset in (("fast", "-2m"), ("lanes", "+2m"), ("lanes", "-2m"), ("finish", "+2m")):
            site.start_command(group, "-c", WITH_ANOTHER_CLOCK, library, offset, group)
        site.database.latency_s = 0.05
        task_id = site.submit_slow()
        killed = site.start_worker("lanes")
        wait_for(lambda: len(site.events("worker.started")) == 5)
        killed.kill()
        site.database.latency_s = 0.01
        site.check(task_id)
        found = site.progress(task_id)
        now = dt.datetime.now(dt.UTC)
        for name in ("startedAt", "finishedAt", "asOf"):
            assert began <= dt.datetime.fromisoformat(found[name]) <= now
        offsets = [dt.datetime.fromisoformat(line["time"]) - began for line in site.events("worker.started")]
        assert sorted(round(offset / dt.timedelta(minutes=2)) for offset in offsets) == [-1, -1, 0, 1, 1]
        assert [line for line in site.events("step.recovered", task_id) if not line["proven"]] == []


def clock_library() -> str:
    """Out of the wheel, which is not imported: Debian's libfaketime 0.9.10 breaks the sleep of Python 3.11."""
    found = importlib.util.find_spec("libfaketime")
    if found is None or found.origin is None:
        pytest.skip("needs libfaketime of requirements/dev.txt")
    library = str(Path(found.origin).parent / "vendor/libfaketime/src/libfaketime.so.1")
    told = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"],
        env={"LD_PRELOAD": library, "FAKETIME": "+2m"},
        capture_output=True,
        check=True,
    )
    if float(told.stdout) - time.time() < 60:
        pytest.skip("the libfaketime of the wheel is not for this platform")
    return library


def test_a_full_store_fails_the_upload_and_a_rerun_sends_the_file(sqlite_orders: OrdersDatabase, desk: Path) -> None:
    sqlite_orders.insert_rows(orders())
    disk = desk / "disk"
    disk.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)]
    if subprocess.run(mounted, check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        with exports_settings(store_dir=disk / "files", retry_delays_ms=(10, 10, 10)):
            task_id = pipeline.submit(*WINDOW)
            view = pipeline.work(task_id)
            assert view.failure is not None
            assert (view.failure.code, view.failure.phase, view.failure.retryable) == (
                "store_unavailable",
                Phase.UPLOAD,
                True,
            )
            assert view.processed == ROWS
            assert [path for path in (disk / "files").rglob("*") if path.suffix == ".csv"] == []
            subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
            FlakyOrders.reads.clear()
            service.rerun(task_id, principal=pipeline.ANN)
            assert pipeline.work(task_id).state is State.SUCCEEDED
            assert FlakyOrders.reads == []
            assert keys(pipeline.read_file(task_id)) == expected_keys()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
