"""Workers on several hosts that share Redis, the database and a bucket, and no disk."""

import random
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests import services
from tests.processes import wait_for
from tests.reliability.installation import PATIENT, ROWS, Installation, expected_keys, installation, keys
from tests.six_days import DAYS

WATCHED = "tests.reliability.watched.WatchedOrders"
ON_A_HOST = """
import runpy, socket, sys
name, group = sys.argv[1:]
socket.gethostname = lambda: name
sys.argv[1:] = [group]
runpy.run_module("config.worker", run_name="__main__")
"""
PAGE_ROWS = int(PATIENT["PAGE_ROWS"])

pytestmark = pytest.mark.slow

Host = list[subprocess.Popen[bytes]]


@contextmanager
def shared_site(
    s3: services.S3, orders_url: str, **settings: str
) -> Iterator[tuple[Installation, Callable[..., Host]]]:
    """An installation over a bucket with its web process, and what starts the workers of one more host."""
    prefix = f"hosts/{uuid.uuid4().hex}"
    bucket = {name.upper(): str(value) for name, value in s3.settings(prefix=prefix).items()}
    with installation(database_url=orders_url, KINDS=WATCHED, SPOOL="s3", **bucket, **settings) as site:
        site.start([])

        def start_host(name: str, groups: list[str]) -> Host:
            disk = site.folder / f"disk of {name}"
            own = {"SPOOL_DIR": str(disk / "spool"), "STORE_DIR": str(disk / "files")}
            return [site.start_command(group, "-c", ON_A_HOST, name, group, **own) for group in groups]

        yield site, start_host
        assert list(site.folder.glob("disk of *")) == list(site.folder.glob("spool")) == []


def kill(host: Host) -> None:
    for process in host:
        process.kill()
    for process in host:
        process.wait()


def reads_of(site: Installation, tasks: list[str]) -> Counter[tuple[str, str, str]]:
    """How often each page was read, those behind the last rows of a shard too."""
    lines = [line for line in site.events("page.read") if line["taskId"] in tasks]
    return Counter((line["taskId"], line["shardId"], line["cursor"]) for line in lines)


def test_a_host_goes_on_with_the_shards_of_a_dead_one_and_renders_what_both_have_read(
    s3: services.S3, orders_url: str
) -> None:
    with shared_site(s3, orders_url) as (site, start_host):
        site.database.latency_s = 0.05
        dead = start_host("north", ["lanes", "lanes"])
        start_host("south", ["fast", "lanes", "lanes"])
        wait_for(lambda: len(site.events("worker.started")) == 5, limit_s=60)
        task_id = site.submit_slow()
        wait_for(lambda: site.progress(task_id)["shards"]["running"] == 4)
        kill(dead)
        site.database.latency_s = 0.01
        site.check(task_id)
        recovered = site.events("step.recovered", task_id)
        assert {line["worker"].partition(":")[0] for line in recovered} == {"north"}
        assert not any(line["proven"] for line in recovered)
        assert [line for line in site.events("shard.started", task_id) if line["cursor"]] != []
        reads = reads_of(site, [task_id])
        assert ROWS / PAGE_ROWS <= len(reads) <= ROWS / PAGE_ROWS + 2 * DAYS
        assert reads.total() - len(reads) <= len(recovered) == 2


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_ten_hosts_read_hardly_a_page_of_thirty_tasks_twice(s3: services.S3, orders_url: str) -> None:
    """One of them is killed in the middle."""
    limits = {"RUNNING_PER_OWNER": "30", "QUEUED_PER_OWNER": "30"}
    with shared_site(s3, orders_url, **limits) as (site, start_host):
        hosts = [start_host(f"host-{number}", ["fast", "lanes"]) for number in range(10)]
        wait_for(lambda: len(site.events("worker.started")) == 20, limit_s=300)
        began = time.monotonic()
        days = [random.randint(1, DAYS - 1) for _ in range(30)]
        tasks = [site.submit(f"2026-09-0{day}", f"2026-09-0{day + 1}", random.choice(["csv", "xlsx"])) for day in days]
        wait_for(lambda: reads_of(site, tasks).total() > 100, limit_s=120)
        kill(hosts[0])
        for task_id in tasks:
            found = site.wait(task_id, limit_s=300)
            assert (found["state"], found["drift"]["kind"], found["processed"]) == (
                "succeeded",
                "exact",
                found["total"],
            )
            numbers = keys(site.download(task_id))
            assert numbers == [number for number in expected_keys() if numbers[0] <= number <= numbers[-1]]
        reads = reads_of(site, tasks)
        took = time.monotonic() - began
        print(f"{reads.total()} reads of {len(reads)} pages by ten hosts in {took:.0f} s")  # noqa: T201  # a figure
        assert len(reads) > 30 * 2 * ROWS / DAYS / PAGE_ROWS
        assert reads.total() <= 1.05 * len(reads)
