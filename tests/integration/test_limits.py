"""What one owner may have under way: exact at any number of racing submits, and a refusal changes nothing."""

import threading
import time
from collections import Counter

import pytest
from django.test import Client

from exports.contracts import Step
from exports.pipeline import sweep
from exports.state.replies import Claim, NoClaim
from exports.state.store import Store, store
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.integration.api_client import EXPORTS, alice, bob, submit, tokens, world  # noqa: F401
from tests.integration.api_world import World
from tests.integration.test_state_store import DIGEST, TRACE, claim, ref, request
from tests.kinds import FlakyOrders


def refused(client: Client, code: str, **changes: str) -> dict[str, object]:
    response = submit(client, **changes)
    assert (response.status_code, response.json()["code"]) == (429, code)
    assert int(response["Retry-After"]) >= 1
    body: dict[str, object] = response.json()
    return body


def test_a_full_queue_is_429_with_the_progress_of_the_running_task(world: World, alice: Client, bob: Client) -> None:
    with exports_settings(queued_per_owner=2):
        running = submit(alice, requestId="running").json()["taskId"]
        world.begin(running)
        for number in range(2):
            assert submit(alice, requestId=f"queued-{number}").status_code == 202
        before = world.dump()
        body = refused(alice, "queue_full", requestId="one-more")
        assert world.dump() == before
        task = body["running"]
        assert isinstance(task, dict)
        assert (task["taskId"], task["state"], task["phase"], task["total"]) == (running, "running", "fetch", 30)
        assert submit(alice, requestId="queued-1").status_code == 200
        assert submit(bob, requestId="one-more").status_code == 202
        world.begin(world.task_ids()[1])
        assert submit(alice, requestId="one-more").status_code == 202


def test_too_many_submits_in_a_minute_are_429_and_known_ones_are_not_counted(world: World, alice: Client) -> None:
    with exports_settings(submits_per_minute=3):
        for number in range(3):
            task_id = submit(alice, requestId=f"r-{number}").json()["taskId"]
            assert submit(alice, requestId=f"r-{number}").status_code == 200
            alice.post(f"{EXPORTS}/{task_id}/cancel")
        before = world.dump()
        response = submit(alice, requestId="r-4")
        assert (response.status_code, response.json()["code"]) == (429, "too_many_submits")
        assert 1 <= int(response["Retry-After"]) <= 60
        assert "running" not in response.json()
        assert world.dump() == before
        owner_index = next(key for key in before if b"index:owner" in key)
        first = min(task_id.encode() for task_id in world.task_ids())
        world.redis.zadd(owner_index, {first: time.time() * 1000 - 60_001})
        assert submit(alice, requestId="r-4").status_code == 202


@pytest.mark.usefixtures("redis_db")
def test_racing_submits_are_accepted_up_to_the_limit_and_not_once_more() -> None:
    with exports_settings(queued_per_owner=20):
        state = store()
        found: Counter[bool] = Counter()

        def act(number: int) -> None:
            task = ref(f"exp_{number}", f"r{number}")
            made = state.submit(task, request(task.request_id), fingerprint="f", traceparent=TRACE)
            found[made is None] += 1

        threads = [threading.Thread(target=act, args=(number,)) for number in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {True: 20, False: 80}


def queued(state: Store, number: int, owner: str = "ann") -> None:
    task = ref(f"exp_{owner}_{number}", f"r{number}", owner)
    assert state.submit(task, request(task.request_id, owner), fingerprint="f", traceparent=TRACE) is None


@pytest.mark.usefixtures("redis_db")
def test_more_running_tasks_than_an_owner_may_have_wait_behind_those_of_others() -> None:
    with exports_settings(running_per_owner=2):
        state = store()
        for number in range(4):
            queued(state, number)
        queued(state, 0, "bob")
        for number in range(2):
            claim(state, ref(f"exp_ann_{number}", f"r{number}"), Step.PLAN)
        third = ref("exp_ann_2", "r2")
        refusal = state.claim(third, Step.PLAN, worker="host:w", digest=DIGEST)
        assert isinstance(refusal, NoClaim) and refusal.reason == "full"
        proposed = [found.task_id for found in state.next_tasks(Step.PLAN, 10)]
        assert proposed.index(third.id) > proposed.index("exp_bob_0")
        assert isinstance(state.claim(ref("exp_bob_0", "r0", "bob"), Step.PLAN, worker="host:w", digest=DIGEST), Claim)
        # A task that runs already goes on: its steps are not new tasks.
        state.cancel(ref("exp_ann_0", "r0"))
        with exports_settings(cancel_grace_ms=0):
            assert store().complete_cancel(ref("exp_ann_0", "r0")) == "cancelled"
        assert isinstance(state.claim(third, Step.PLAN, worker="host:w", digest=DIGEST), Claim)


@pytest.mark.usefixtures("desk")
def test_all_tasks_over_the_limit_are_done_in_the_end(sqlite_orders: OrdersDatabase) -> None:
    sqlite_orders.insert({"id": number} for number in range(1, 4))
    with exports_settings(running_per_owner=1):
        tasks = [pipeline.submit("2026-09-14", "2026-09-14") for _ in range(3)]
        assert {pipeline.work(task_id).state for task_id in tasks} == {"succeeded"}


@pytest.mark.usefixtures("desk")
def test_a_task_that_was_worked_on_for_too_long_fails_and_a_rerun_goes_on(sqlite_orders: OrdersDatabase) -> None:
    sqlite_orders.insert({"id": number} for number in range(1, 41))
    with exports_settings(page_rows=10, page_rows_min=10, max_runtime_s=1):
        FlakyOrders.before_read.extend([lambda *_: time.sleep(0.45), lambda *_: sweep.end_stuck()])
        task_id = pipeline.submit("2026-09-14", "2026-09-14")
        found = pipeline.work(task_id)
        assert (found.state, found.failure and found.failure.code) == ("failed", "max_runtime")
        assert found.failure is not None and found.failure.retryable
        assert 0 < found.processed < 40
        FlakyOrders.before_read.clear()
        FlakyOrders.reads.clear()
        pipeline.service.rerun(task_id, principal=pipeline.ANN)
        assert pipeline.work(task_id).processed == 40
    assert "" not in [cursor for _, cursor, _ in FlakyOrders.reads]


@pytest.mark.usefixtures("redis_db")
def test_time_in_which_nobody_worked_is_no_run_time() -> None:
    with exports_settings(lease_ms=500, renew_every_ms=100):
        state = store()
        queued(state, 0)
        held = claim(state, ref("exp_ann_0", "r0"), Step.PLAN)
        time.sleep(0.2)
        state.renew(held)
        worked = state.read("exp_ann_0")
        assert worked is not None and worked.run_ms >= 200
        time.sleep(0.6)  # longer than the lease lives: its holder was gone
        state.renew(held)
        state.release(held)
        time.sleep(0.2)  # nobody holds it
        claim(state, ref("exp_ann_0", "r0"), Step.PLAN)
        idle = state.read("exp_ann_0")
    assert idle is not None and idle.run_ms == worked.run_ms
