"""Faults of everything around running workers: killed and frozen processes, cut roads, ended sessions, deploys.

What is random is seeded by pytest-randomly: `--randomly-seed=N` plays a failure again.
"""

import json
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
import redis

from tests import services
from tests.processes import wait_for
from tests.reliability import figures
from tests.reliability.installation import (
    DATABASE,
    GROUPS,
    PATIENT,
    ROWS,
    WINDOW,
    Installation,
    installation,
    locked_orders,
    repeat_until,
    stopped,
)
from tests.reliability.sweeping import Sample
from tests.six_days import READER

WATCHED = "tests.reliability.watched.WatchedOrders"
PATIENCE_S = 10
"""A client of Redis waits for 5 s, twice."""
CANCEL_S = 10


@pytest.fixture(scope="module")
def home(orders_url: str) -> Iterator[Installation]:
    with installation(database_url=orders_url, KINDS=WATCHED, STATEMENT_TIMEOUT_MS="1000") as site:
        site.start([*GROUPS, "lanes"])
        yield site


@pytest.fixture(autouse=True)
def _everyone_lives(home: Installation) -> Iterator[None]:
    """No fault of the outside ends a process; the tests that kill start again what they killed."""
    yield
    lived = home.everyone_lives()
    home.revive()
    assert lived


@pytest.mark.parametrize("kills", [25, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_random_kills_of_workers_web_and_redis_lose_and_double_no_row(home: Installation, kills: int) -> None:
    tasks = [home.submit(*WINDOW), home.submit(*WINDOW, "xlsx")]
    for _ in range(kills):
        time.sleep(random.uniform(0.1, 0.6))
        if home.ended(tasks[-1]) and home.ended(tasks[-2]):
            tasks.append(home.submit(*WINDOW, random.choice(["csv", "xlsx"])))
        kill(home)
    for task_id in tasks:
        home.check(task_id)
    figures.tell(f"{kills} kills of workers, web process and Valkey, {len(tasks)} whole files")
    recovered = [line for line in home.events("step.recovered") if line["taskId"] in tasks and line["proven"]]
    assert recovered != []


def kill(home: Installation) -> None:
    victim = random.choice([*home.roles, "lanes-1", "lanes-2", "valkey", "valkey"])
    if victim == "valkey":
        home.valkey.kill()
        home.valkey.start()
    else:
        home.roles[victim].kill()
        home.roles[victim].wait()
        home.revive()


def test_a_kill_of_every_worker_costs_at_most_one_page_a_lane(home: Installation) -> None:
    task_id = home.submit_slow()
    kills = 0
    for _ in range(3):
        before = len(home.events("page.read", task_id))
        for process in home.workers():
            process.kill()
            process.wait()
        home.revive()
        kills += len(home.workers("lanes"))
        wait_for(lambda before=before: len(home.events("page.read", task_id)) > before + 5)  # type: ignore[misc]
    home.check(task_id)
    reads = Counter((line["shardId"], line["cursor"]) for line in home.events("page.read", task_id))
    figures.tell(f"{reads.total() - len(reads)} pages read twice after {kills} lanes were killed")
    assert len(reads) >= ROWS / int(PATIENT["PAGE_ROWS"])
    assert reads.total() - len(reads) <= kills


@pytest.mark.parametrize("moments", [24, pytest.param(500, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_a_cancel_at_any_moment_is_soon_done_and_nothing_is_claimed_after_it(
    home: Installation, every: Sample, moments: int
) -> None:
    took: list[float] = []
    claims: dict[str, int] = {}
    while len(took) < moments and not (took and every.over):
        task_id = home.submit(*WINDOW, random.choice(["csv", "xlsx"]))
        time.sleep(random.uniform(0, 2))
        began = time.monotonic()
        if home.cancel(task_id) == 409:
            home.check(task_id)
            continue
        claims[task_id] = claimed(home, task_id)
        while home.state(task_id) != "cancelled":
            assert time.monotonic() - began < CANCEL_S
            time.sleep(0.01)
        took.append(time.monotonic() - began)
    figures.tell(f"{len(took)} cancels: median {statistics.median(took):.2f} s, at most {max(took):.2f} s")
    assert statistics.median(took) <= 1
    assert {task_id: claimed(home, task_id) for task_id in claims} == claims
    for folder in (home.folder / "spool" / "tasks", home.folder / "files"):
        wait_for(lambda folder=folder: claims.keys().isdisjoint(path.name for path in folder.iterdir()))  # type: ignore[misc]


def claimed(home: Installation, task_id: str) -> int:
    """How often steps of the task were claimed: each claim has the next fence."""
    with redis.Redis.from_url(home.valkey.url(1)) as client:
        return int(client.hget(f"export:task:{task_id}", "fence") or 0)


@pytest.mark.parametrize("road", ["redis", "database"])
def test_a_road_that_is_cut_again_and_again_changes_nothing(home: Installation, road: str) -> None:
    cuts: list[int] = []
    task_id = home.submit_slow()
    repeat_until(
        lambda: home.ended(task_id),
        lambda: cuts.append(getattr(home, road).cut()),
        pause=lambda: random.uniform(0.1, 0.5),
        most=8,
    )
    assert sum(cuts) > 0
    home.check(task_id)


def test_sessions_that_an_administrator_ends_are_opened_again(home: Installation, postgres: services.Postgres) -> None:
    task_id = home.submit_slow()
    ended = 0
    with psycopg.connect(postgres.dsn(DATABASE), autocommit=True) as connection:
        for _ in range(4):
            found = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [READER]
            )
            ended += len(found.fetchall())
            time.sleep(0.2)
    assert ended > 0
    home.check(task_id)


def test_pages_that_the_database_does_not_answer_in_time_are_read_again(
    home: Installation, postgres: services.Postgres
) -> None:
    task_id = home.submit_slow()
    with locked_orders(postgres):
        wait_for(lambda: len(failures(home, task_id)) >= 2)
    home.check(task_id)
    assert set(failures(home, task_id)) == {"database_timeout"}


def failures(home: Installation, task_id: str) -> list[str]:
    return [line["code"] for line in home.events("step.failed", task_id)]


@pytest.mark.parametrize("frozen_s", [PATIENCE_S + 1, pytest.param(45, marks=pytest.mark.soak)])
def test_a_frozen_redis_is_a_503_and_a_pause(home: Installation, frozen_s: float) -> None:
    """Longer than a lease, and than a client waits."""
    task_id = home.submit_slow()
    with stopped(home.valkey.pid):
        began = time.monotonic()
        status, headers, answer = home.call(
            "POST", "/api/orders/export", {"requestId": f"frozen {frozen_s}", **window()}
        )
        assert (status, json.loads(answer)["code"]) == (503, "state_unavailable")
        assert int(headers["Retry-After"]) > 0
        assert time.monotonic() - began < PATIENCE_S + 4
        time.sleep(max(0.0, frozen_s - (time.monotonic() - began)))
    home.check(task_id)
    # The frozen Redis may have taken the refused submit once it was awake: its task must not run on into other tests.
    home.check(home.submit(*WINDOW, request_id=f"frozen {frozen_s}"))


def window() -> dict[str, str]:
    return {"from": WINDOW[0], "to": WINDOW[1], "format": "csv"}


def test_a_deploy_loses_no_page(home: Installation) -> None:
    """Each process ends by itself after its page, gives its step back, and its successor goes on behind it."""
    before = home.rows_counted()
    task_id = home.submit_slow()
    for process in home.workers():
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        home.revive()
    home.check(task_id)
    assert (home.rows_counted() - before) % ROWS == 0
    assert home.events("step.recovered", task_id) == []


def test_a_deploy_that_kills_after_its_patience_loses_the_page_in_progress_and_no_more(
    home: Installation, postgres: services.Postgres
) -> None:
    before = home.rows_counted()
    task_id = home.submit_slow()
    with locked_orders(postgres):
        for process in home.workers():
            process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        for process in home.workers():
            process.kill()
            process.wait()
    home.revive()
    home.check(task_id)
    assert (home.rows_counted() - before) % ROWS == 0
