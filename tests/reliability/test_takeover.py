"""Who goes on with the work of a dead worker, how soon, and who is never taken for dead."""

import subprocess
import time
from collections.abc import Iterator

import pytest

from tests import services
from tests.processes import wait_for
from tests.reliability.installation import (
    Installation,
    installation,
    locked_orders,
    orders_url,  # noqa: F401  # fixture
)

DEFAULT_TIMES = {"LEASE_MS": "60000", "RENEW_EVERY_MS": "10000", "SWEEP_EVERY_MS": "5000"}
SOON_S = 5
IN_A_CONTAINER = """
import os, sys
os.execvp("unshare", ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-m", "config.worker", "lanes"])
"""


def test_the_shard_of_a_dead_worker_goes_on_within_five_seconds(orders_url: str) -> None:
    """With the default times, of which the lease alone is 60 s, and with nobody who starts the dead one again."""
    with installation(database_url=orders_url, **DEFAULT_TIMES) as site:
        site.start(["fast", "lanes", "lanes", "lanes"])
        for victim in site.workers("lanes")[:2]:
            site.database.latency_s = 0.05
            task_id = site.submit_slow()
            victim.kill()
            died = time.monotonic()
            wait_for(lambda task_id=task_id: site.events("step.recovered", task_id) != [])  # type: ignore[misc]
            [lost] = site.events("step.recovered", task_id)
            assert lost["proven"]
            wait_for(lambda task_id=task_id, lost=lost: len(starts(site, task_id, lost["step"])) == 2)  # type: ignore[misc]
            took = time.monotonic() - died
            site.database.latency_s = 0.01
            site.check(task_id)
            assert took < SOON_S


def starts(site: Installation, task_id: str, shard_id: str) -> list[dict[str, object]]:
    return [line for line in site.events("shard.started", task_id) if line["shardId"] == shard_id]


@pytest.fixture(scope="module")
def containers(orders_url: str) -> Iterator[Installation]:
    """Lanes with a pid namespace of their own, as two containers on one host have; leases of a second."""
    probe = subprocess.run(["unshare", "--pid", "--fork", "true"], check=False, capture_output=True)
    if probe.returncode:
        pytest.skip("needs the right to make a pid namespace")
    with installation(database_url=orders_url, LEASE_MS="1000", RENEW_EVERY_MS="200", SWEEP_EVERY_MS="200") as site:
        site.start(["fast", "finish"])
        for number in range(2):
            site.roles[f"contained-{number}"] = site.start_command("lanes", "-c", IN_A_CONTAINER)
        yield site


def test_a_slow_page_in_another_container_is_not_taken_for_a_death(
    containers: Installation, postgres: services.Postgres
) -> None:
    """Every page in progress takes three leases, and sweeps look for the dead five times a second."""
    task_id = containers.submit_slow()
    with locked_orders(postgres):
        time.sleep(3)
    containers.check(task_id)
    assert containers.events("step.recovered", task_id) == []


def test_a_dead_worker_of_another_container_is_proved_dead(containers: Installation) -> None:
    containers.database.latency_s = 0.05
    task_id = containers.submit_slow()
    containers.workers("contained")[0].kill()
    wait_for(lambda: containers.events("step.recovered", task_id) != [])
    containers.database.latency_s = 0.01
    containers.check(task_id)
    [lost] = containers.events("step.recovered", task_id)
    assert lost["proven"]
