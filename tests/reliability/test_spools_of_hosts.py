"""Two hosts with a spool each, one Redis, one database, one store: worker groups whose only difference is the folder."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.processes import wait_for
from tests.reliability.installation import ROWS, WINDOW, Installation, installation

GROUPS = ("fast", "lanes")
SPOOL_WAIT_S = 3


@pytest.fixture
def site(orders_url: str) -> Iterator[Installation]:
    with installation(database_url=orders_url, PAGE_ROWS="150", SPOOL_WAIT_S=str(SPOOL_WAIT_S)) as found:
        found.start_web()
        yield found


def start_host(site: Installation, name: str) -> list[subprocess.Popen[bytes]]:
    return [site.start_worker(group, SPOOL_DIR=str(site.folder / name)) for group in GROUPS]


def kill(site: Installation, workers: list[subprocess.Popen[bytes]]) -> None:
    for process in workers:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        site.forget(process)


def test_two_hosts_work_side_by_side_and_one_that_was_killed_goes_on_when_it_is_back(site: Installation) -> None:
    first_host = start_host(site, "first")
    mine = site.submit_slow()
    start_host(site, "second")
    kill(site, first_host)
    stopped_at = site.progress(mine)["processed"]
    other = site.submit(*WINDOW)
    site.check(other)
    assert (site.state(mine), site.progress(mine)["processed"]) == ("running", stopped_at)
    start_host(site, "first")
    site.check(mine)
    assert site.rows_counted() == 2 * ROWS, "no committed page is read again"
    for name in ("first", "second"):
        wait_for(lambda name=name: not list((site.folder / name / "tasks").iterdir()))  # type: ignore[misc]


@pytest.mark.soak
def test_a_host_that_does_not_come_back_ends_its_tasks_and_they_begin_anew_on_another(site: Installation) -> None:
    first_host = start_host(site, "first")
    task_id = site.submit_slow()
    start_host(site, "second")
    kill(site, first_host)
    wait_for(lambda: site.ended(task_id), limit_s=60)
    assert site.progress(task_id)["errorCode"] == "spool_lost"
    status, _, answer = site.call("POST", f"/api/orders/export/{task_id}/rerun", {"fromScratch": True})
    assert status == 202, json.loads(answer)
    site.check(task_id)
