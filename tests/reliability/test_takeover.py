"""Who goes on with the work of a dead worker, how soon, and who is never taken for dead."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests import services
from tests.processes import wait_for
from tests.reliability.installation import (
    Installation,
    installation,
    locked_orders,
)

DEFAULT_TIMES = {"LEASE_MS": "60000", "RENEW_EVERY_MS": "10000", "SWEEP_EVERY_MS": "5000"}
SOON_S = 5
IN_A_CONTAINER = """
import os, sys
os.execvp("unshare", ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-m", "config.worker", "lanes"])
"""


@pytest.mark.parametrize("deaths", [1, pytest.param(20, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
def test_the_shard_of_a_dead_worker_goes_on_within_five_seconds(orders_url: str, deaths: int) -> None:
    """With the default times, of which the lease alone is 60 s; nobody starts the dead one again meanwhile."""
    with installation(database_url=orders_url, **DEFAULT_TIMES) as site:
        site.start(["fast", "lanes", "lanes"])
        for _ in range(deaths):
            site.database.latency_s = 0.05
            task_id = site.submit_slow()
            kill_a_holder(site, task_id, group="lanes")
            died = time.monotonic()
            lost = the_one_recovered(site, task_id)
            wait_for(lambda lost=lost: started_since(site, lost))  # type: ignore[misc]
            took = time.monotonic() - died
            site.database.latency_s = 0.01
            site.check(task_id)
            assert took < SOON_S
            site.revive()


def kill_a_holder(site: Installation, task_id: str, *, group: str) -> None:
    """Kill -9 of a lane at a moment when every lane holds a shard."""
    lanes = site.workers(group)

    def all_hold() -> bool:
        signal_all(lanes, signal.SIGSTOP)
        if site.progress(task_id)["shards"]["running"] == len(lanes):
            return True
        signal_all(lanes, signal.SIGCONT)
        return False

    wait_for(all_hold)
    signal_all(lanes[:1], signal.SIGKILL)
    signal_all(lanes[1:], signal.SIGCONT)
    lanes[0].wait()


def signal_all(processes: list[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    """With what they have started."""
    for process in processes:
        os.killpg(process.pid, number)


def the_one_recovered(site: Installation, task_id: str) -> dict[str, Any]:
    """The line of the log that tells of the only step taken back, from a worker that was proved dead."""
    wait_for(lambda: site.events("step.recovered", task_id) != [])
    [lost] = site.events("step.recovered", task_id)
    assert lost["proven"]
    return lost


def started_since(site: Installation, lost: dict[str, Any]) -> bool:
    found = site.events("shard.started", lost["taskId"])
    return any(line["shardId"] == lost["step"] and line["time"] >= lost["time"] for line in found)


@pytest.fixture(scope="module")
def containers(orders_url: str) -> Iterator[Installation]:
    """Lanes with a pid namespace of their own, as two containers on one host have; leases of two seconds."""
    probe = subprocess.run(["unshare", "--pid", "--fork", "true"], check=False, capture_output=True)
    if probe.returncode:
        pytest.skip("needs the right to make a pid namespace")
    with installation(database_url=orders_url, LEASE_MS="2000", RENEW_EVERY_MS="200", SWEEP_EVERY_MS="200") as site:
        site.start(["fast"])
        for number in range(2):
            site.roles[f"contained-{number}"] = site.start_command("lanes", "-c", IN_A_CONTAINER)
        yield site


def test_a_slow_page_in_another_container_is_not_taken_for_a_death(
    containers: Installation, postgres: services.Postgres
) -> None:
    """Every page in progress takes two leases, and sweeps look for the dead five times a second."""
    task_id = containers.submit_slow()
    with locked_orders(postgres):
        time.sleep(4)
    containers.check(task_id)
    assert containers.events("step.recovered", task_id) == []


def test_a_dead_worker_of_another_container_is_proved_dead(containers: Installation) -> None:
    containers.database.latency_s = 0.05
    task_id = containers.submit_slow()
    kill_a_holder(containers, task_id, group="contained")
    the_one_recovered(containers, task_id)
    containers.database.latency_s = 0.01
    containers.check(task_id)
