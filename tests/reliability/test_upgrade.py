"""Two versions side by side: each goes on with the tasks that it has planned, and no file is a mixture of both.

A version with another delimiter stands for one with other columns or another form of the file.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import services
from tests.databases import OrdersDatabase, utc
from tests.processes import Site, running, wait_for

DAYS = ("2026-09-14", "2026-09-15")
NEW = {"DELIMITER": ";"}
ROWS = 60


@pytest.fixture
def site(desk: Path, sqlite_orders: OrdersDatabase, valkey: services.Valkey) -> Iterator[Site]:
    sqlite_orders.insert(
        {"id": number, "created_at": utc(f"{DAYS[number % 2]} 04:00:{number // 2:02d}")} for number in range(ROWS)
    )
    # A plan leaves its task to the lanes, and a task that only the other version is there for is not given up meanwhile.
    settings = {"PAGE_ROWS": "5", "PAGE_ROWS_MIN": "5", "FAST_ROWS": "0", "LEASE_MS": "60000"}
    database_url = f"sqlite:///{sqlite_orders.settings['NAME']}"
    with running(Site(desk, valkey=valkey, database_url=database_url, **settings)) as found:
        found.start_web()
        yield found


def planned_by(site: Site, **version: str) -> str:
    """A task that a process of this version has planned."""
    process = site.start_worker("fast", **version)
    task_id = site.submit(*DAYS)
    wait_for(lambda: site.progress(task_id)["total"] is not None)
    process.terminate()
    assert process.wait(20) == 0
    return task_id


def test_a_task_waits_for_the_version_that_planned_it_and_no_file_is_a_mixture(site: Site) -> None:
    old = planned_by(site)
    site.start_worker("lanes", **NEW)
    new = planned_by(site, **NEW)
    assert site.wait(new)["state"] == "succeeded"
    assert (site.progress(old)["state"], site.progress(old)["processed"]) == ("running", 0)
    site.start_worker("lanes")
    assert site.wait(old)["state"] == "succeeded"
    for task_id, sign in ((old, ","), (new, ";")):
        lines = site.download(task_id).decode("utf-8-sig").splitlines()
        assert len(lines) == 1 + ROWS
        assert {line.count(sign) for line in lines} == {13}
