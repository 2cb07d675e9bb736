"""Cases that need processes of their own."""

import csv
import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.acceptance.conftest import Open
from tests.processes import Site, wait_for
from tests.six_days import ROWS

WINDOW = ("2026-09-01", "2026-09-06")


@contextmanager
def polling(site: Site, task_id: str) -> Iterator[list[dict[str, Any]]]:
    """Every progress that the web process answers meanwhile, as quickly as it can be asked."""
    seen: list[dict[str, Any]] = []
    enough = threading.Event()

    def ask() -> None:
        while not enough.wait(0.05):
            seen.append(site.progress(task_id))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield seen
    finally:
        enough.set()
        asking.join()


def test_progress_stays_true_over_a_kill_of_all_workers(open_site: Open) -> None:
    """H064"""
    site = open_site(PAGE_ROWS="50", PAGE_ROWS_MIN="20")
    site.start_web()
    workers = site.start_workers()
    task_id = site.submit(*WINDOW)
    with polling(site, task_id) as seen:
        wait_for(lambda: any(found["processed"] >= ROWS / 4 for found in seen))
        for process in workers:
            process.kill()
            process.wait()
        at_kill = site.progress(task_id)["processed"]
        site.start_workers()
        found = site.wait(task_id)
    assert 0 < at_kill < ROWS
    assert (found["state"], found["processed"], found["total"]) == ("succeeded", ROWS, ROWS)
    counts = [view["processed"] for view in seen]
    assert counts == sorted(counts)
    assert max(counts) <= ROWS


def test_unchanged_orders_make_the_same_file_each_time(open_site: Open) -> None:
    """H009. Four lanes share the days in another order each time."""
    site = open_site()
    site.start_web()
    site.start_workers()
    tasks = [site.submit(*WINDOW) for _ in range(3)]
    assert [site.wait(task_id)["state"] for task_id in tasks] == ["succeeded"] * 3
    first, *others = [site.download(task_id) for task_id in tasks]
    assert others == [first, first]
    rows = list(csv.reader(io.StringIO(first.decode("utf-8-sig"), newline="")))[1:]
    order = [(row[2][:10], int(row[0])) for row in rows]
    assert order == sorted(order)
    assert len(order) == ROWS
