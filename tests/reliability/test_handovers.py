"""What one process leaves and another finds: claims, segments, leases and hints at the moment they change hands.

Each test is the narrowest one for a seeded bug of `tests/mutants`.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import dramatiq
import pytest
import redis

from exports import storage
from exports.conf import conf
from exports.contracts import CommittedSegment, Drift, Phase, QueueName, Recount, State, Step
from exports.errors import StateUnavailable
from exports.pipeline import hints, plan, render, shard, steps, sweep
from exports.state.replies import Claim, NoClaim, WorkerSign
from exports.state.store import Store, store
from exports.storage.base import NoRecord, Source
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.integration.test_state_store import DIGEST, claim, commit, planned, submit
from tests.integration.test_state_store import shard as planned_shard
from tests.kinds import FlakyOrders
from tests.reliability import figures

DAYS = ("2026-09-14", "2026-09-15")
ROWS = 60


@pytest.fixture
def orders(desk: Path, sqlite_orders: OrdersDatabase) -> OrdersDatabase:
    """60 orders on each of the two days; pages hold 20."""
    for day, first in ((14, 1), (15, 1001)):
        sqlite_orders.insert(
            {"id": first + number, "created_at": utc(f"2026-09-{day} 04:00:{number:02d}")} for number in range(ROWS)
        )
    return sqlite_orders


@pytest.fixture
def state(redis_db: redis.Redis) -> Store:
    return store()


def small_pages(**settings: object) -> object:
    return exports_settings(page_rows=20, page_rows_min=10, **settings)


def only(step: Step, perform: Callable[[steps.Holding], object]) -> None:
    """Perform the steps of one class and do not go on with the next."""
    steps.run_slice(step, lambda held: perform(held) and None)


def keys_in(data: bytes) -> list[int]:
    return [int(line.split(b",")[0]) for line in data.splitlines()[1:]]


def whole_file() -> list[int]:
    return [*range(1, 1 + ROWS), *range(1001, 1001 + ROWS)]


# --- pages and segments ---------------------------------------------------------------------------


def test_a_page_is_in_its_segment_before_it_is_committed(
    orders: OrdersDatabase, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    real = Store.commit

    def watched(self: Store, held: Claim, *, segment: CommittedSegment, **rest: object) -> str:
        path = desk / "spool" / "tasks" / held.ref.id / segment.name
        seen.append((path.stat().st_size, segment.length))
        assert len(path.with_name(f"{segment.name}.pages").read_bytes().splitlines()) == segment.pages
        return real(self, held, segment=segment, **rest)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(Store, "commit", watched)
    with small_pages():
        pipeline.export(*DAYS)
    assert len(seen) == 6
    assert [on_disk for on_disk, _ in seen] == [committed for _, committed in seen]


def test_each_claim_of_a_shard_has_a_file_of_its_own(orders: OrdersDatabase, desk: Path) -> None:
    with small_pages():
        task_id = pipeline.submit(*DAYS)
        only(Step.PLAN, plan.plan_task)
        request, ref = store().request(task_id), store().ref(task_id)
        assert request is not None and ref is not None
        zombie = steps.claim_step(ref, request, Step.SHARD)
        assert isinstance(zombie, Claim)
        writer = shard._open_segment(steps.Holding(zombie, deadline=time.monotonic() + 60))
        [lease] = store().leases([task_id])[task_id]
        assert store().recover(ref, lease, proven=True, counted=False) == "ok"
        only(Step.SHARD, shard.fetch_shard)
        folder = desk / "spool" / "tasks" / task_id
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        os.write(writer._bytes, b"the zombie wakes up")
        writer.close()
        committed = {segment.name for segment in store().segments(task_id)}
        assert {name: (folder / name).read_bytes() for name in committed} == {name: before[name] for name in committed}
        FlakyOrders.reads.clear()
        assert pipeline.work(task_id).state is State.SUCCEEDED
    assert FlakyOrders.reads == []
    assert keys_in(pipeline.read_file(task_id)) == whole_file()


def test_segments_stand_in_the_order_of_their_claims() -> None:
    segments = [
        CommittedSegment(f"{name}-{fence}-x", name, fence, 1, 1, 1, 1)
        for fence in (10, 2, 1, 11)
        for name in ("2026-09-02", "2026-09-01")
    ]
    assert [(found.shard_id, found.fence) for found in render.ordered(segments)] == [
        (name, fence) for name in ("2026-09-01", "2026-09-02") for fence in (1, 2, 10, 11)
    ]


def test_a_segment_that_redis_lost_is_read_again(orders: OrdersDatabase, redis_db: redis.Redis) -> None:
    with small_pages():
        task_id = pipeline.submit(*DAYS)
        only(Step.PLAN, plan.plan_task)
        only(Step.SHARD, shard.fetch_shard)
        lost = store().segments(task_id)[0]
        assert redis_db.hdel(f"export:segments:{task_id}", lost.name) == 1
        assert pipeline.work(task_id).state is State.SUCCEEDED
    assert keys_in(pipeline.read_file(task_id)) == whole_file()


def test_a_zombie_with_an_older_recipe_cannot_replace_the_published_file(orders: OrdersDatabase) -> None:
    """An order that changes between two reads of its shard makes two artifacts in one epoch."""
    late_keys: list[str] = []

    def render_but_lose_a_shard(held: steps.Holding) -> None:
        segments = render.ordered(store().segments(task_id))
        recipe = render.build_recipe(held, segments, render.check_segments(held, segments))
        late_keys.append(render.object_key(held.claim, recipe))
        store().reopen(held.claim, [DAYS[0]])

    with small_pages():
        task_id = pipeline.submit(*DAYS)
        only(Step.PLAN, plan.plan_task)
        only(Step.SHARD, shard.fetch_shard)
        only(Step.RENDER, render_but_lose_a_shard)
        orders.execute("UPDATE orders SET remark = 'changed meanwhile' WHERE id = 1")
        assert pipeline.work(task_id).state is State.SUCCEEDED
    published = pipeline.read_file(task_id)
    assert b"changed meanwhile" in published
    old = Source(size=3, sha256=hashlib.sha256(b"old").hexdigest(), read=lambda offset, length: iter([b"old"]))
    storage.artifacts().put(late_keys[0], old, record=NoRecord())
    assert pipeline.read_file(task_id) == published


# --- claims, leases, fan-in -----------------------------------------------------------------------


def test_a_claim_repeated_after_a_lost_reply_takes_one_step(state: Store) -> None:
    task = planned(state, planned_shard("a"), planned_shard("b"))
    limits = {"task_limit": 4, "owner_limit": 4, "budget": 16, "digest": DIGEST, "spool": ""}
    guard = {"guard_leases": 2, "guard_page_ms": 50}
    answers = [
        state._run("claim_step", task, **{"class": Step.SHARD}, claim="one", worker="host:w", **limits, **guard)[:3]
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert [lease.step for lease in state.leases([task.id])[task.id]] == ["a"]


def test_the_budget_of_database_connections_bounds_all_tasks_together(state: Store) -> None:
    task = planned(state, planned_shard("a"), planned_shard("b"), planned_shard("c"))
    with exports_settings(database_leases=2, redis_url=conf().redis_url):
        held = [claim(store(), task, Step.SHARD) for _ in range(2)]
        assert store().claim(task, Step.SHARD, worker="host:w", digest=DIGEST) == NoClaim("full")
        store().release(held[0])
        assert claim(store(), task, Step.SHARD).name == "a"


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_the_end_of_a_task_gives_all_its_leases_back(state: Store, redis_db: redis.Redis, end: str) -> None:
    task = planned(state, planned_shard("a"), planned_shard("b"))
    held = [claim(state, task, Step.SHARD) for _ in range(2)]
    if end == "failed":
        assert state.fail(held[0], "unclassified", retryable=False) == "failed"
    else:
        state.cancel(task)
        with exports_settings(cancel_grace_ms=0, redis_url=conf().redis_url):
            assert store().complete_cancel(task) == "cancelled"
    assert state.leases([task.id])[task.id] == []
    assert redis_db.zcard("export:leases") == 0
    assert state.renew(held[1]) == "lost"
    assert commit(state, held[1], old="", new="5", rows=5) == "lost"


def test_a_plan_that_is_taken_over_keeps_what_was_fixed_first(state: Store) -> None:
    task = submit(state)
    first = claim(state, task, Step.PLAN)
    assert state.keep_plan(first, "", "snapshot of the first") == "ok"
    [lease] = state.leases([task.id])[task.id]
    state.recover(task, lease, proven=True, counted=False)
    second = claim(state, task, Step.PLAN)
    assert state.keep_plan(first, "", "zombie") == "lost"
    assert state.keep_plan(second, "", "snapshot of the second") == "ok"
    assert state.plan(task.id) == {"": "snapshot of the first"}


def test_render_waits_for_a_shard_that_is_read_again(state: Store) -> None:
    task = planned(state, planned_shard("a"), planned_shard("b"))

    def finish() -> str:
        held = claim(state, task, Step.SHARD)
        assert held.record is not None
        commit(state, held, old=held.record.cursor, new="9", rows=10)
        return state.finish_shard(held, Recount(Drift.EXACT))

    assert [finish(), finish()] == ["ok", "last"]
    assert state.reopen(claim(state, task, Step.RENDER), ["a", "b"]) == "ok"
    assert finish() == "ok"
    assert state.claim(task, Step.RENDER, worker="host:w", digest=DIGEST) == NoClaim("done")
    assert finish() == "last"


def test_progress_never_falls_when_a_shard_is_read_again(state: Store) -> None:
    task = planned(state, planned_shard("a"))
    held = claim(state, task, Step.SHARD)
    commit(state, held, old="", new="9", rows=10)
    state.finish_shard(held, Recount(Drift.EXACT))
    assert state.reopen(claim(state, task, Step.RENDER), ["a"]) == "ok"
    view = state.read(task.id)
    assert view is not None and (view.phase, view.processed, view.total) == (Phase.FETCH, 10, 10)


def test_tries_survive_the_death_of_a_worker(state: Store) -> None:
    with exports_settings(retry_delays_ms=(0, 0), redis_url=conf().redis_url):
        task = planned(store(), planned_shard("a"))
        words = []
        for _ in range(3):
            held = claim(store(), task, Step.SHARD)
            words.append(store().retry(held, "database_timeout"))
            if words[-1] == "retry":
                killed = claim(store(), task, Step.SHARD)
                [lease] = store().leases([task.id])[task.id]
                assert lease.claim == killed.claim_id
                assert store().recover(task, lease, proven=True, counted=True) == "ok"
    assert words == ["retry", "retry", "failed"]


# --- the sweep, hints, Redis ----------------------------------------------------------------------


def test_a_worker_whose_clock_is_two_minutes_fast_takes_nothing_from_the_living(
    orders: OrdersDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = pipeline.submit(*DAYS)
    only(Step.PLAN, plan.plan_task)
    request, ref = store().request(task_id), store().ref(task_id)
    assert request is not None and ref is not None
    with exports_settings(lease_ms=60_000):
        digest, spool = plan.specify(request).digest(), storage.spool().id
        held = store().claim(ref, Step.SHARD, worker="another-host:w", digest=digest, spool=spool)
        assert isinstance(held, Claim)
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() + 120)
        sweep.sweep(boot=True)
        assert store().renew(held) == "ok"


def test_two_sweeps_at_once_both_see_a_dead_worker(desk: Path) -> None:
    spool = storage.spool()
    os.close(spool.stay_alive("host:dead"))
    with (desk / "spool" / "alive" / "host:dead").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert spool.dead_workers() == {"host:dead"}


def test_a_lane_gives_its_step_back_before_it_calls_the_next(
    orders: OrdersDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes the hint must find something to claim, or all lanes may stop one after the other."""
    with small_pages(slice_ms=1):
        task_id = pipeline.submit(DAYS[0], DAYS[0])
        sent: list[list[str]] = []

        def send(work: hints.Work, **_: object) -> None:
            sent.append([lease.step for lease in store().leases([task_id])[task_id]])

        with exports_settings(slice_ms=60_000):
            only(Step.PLAN, plan.plan_task)
        monkeypatch.setattr(hints, "send", send)
        steps.run_slice(Step.SHARD, shard.fetch_shard)
    assert sent == [[]]
    assert pipeline.view(task_id).processed == 20


OTHERS = 3


@pytest.mark.parametrize("tasks", [200, pytest.param(10_000, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_hints_stay_few_however_many_tasks_wait(orders: OrdersDatabase, tasks: int) -> None:
    """Two of a class for each worker, of which this process is one, through all sweeps of ten minutes; none is taken."""
    enough = 2 * (OTHERS + 1)
    spool = storage.spool().id
    most = 0

    def look() -> None:
        nonlocal most
        for number in range(OTHERS):
            store().beat(f"host:{number}", WorkerSign("lanes", busy=True, spool=spool, rss_mb=0))
        most = max(most, *hints.count_waiting([spool]).values())

    with small_pages(queued_per_owner=tasks, running_per_owner=tasks, submits_per_minute=tasks):
        for _ in range(tasks):
            pipeline.submit(*DAYS)
            look()
        while store().in_state(State.QUEUED):
            steps.run_slice(Step.PLAN, lambda held: look() or plan.plan_task(held))  # type: ignore[func-returns-value]
    for _ in range(120):
        sweep.top_up_hints()
        look()
    figures.tell(f"{tasks} tasks waited for 120 sweeps: at most {most} hints of a class")
    assert most == enough
    drain_hints()
    sweep.top_up_hints()
    waiting = {name: count for name, count in hints.count_waiting([spool]).items() if count}
    assert waiting == {QueueName.FAST: enough}


def drain_hints() -> None:
    for queue in (hints.PLAN.place, *(hints.place(name, storage.spool().id) for name in (*QueueName, hints.FINISH))):
        dramatiq.get_broker().flush(queue)


def test_a_redis_that_is_away_for_a_moment_fails_no_task(orders: OrdersDatabase) -> None:
    times = iter([True])

    def away(*_: object) -> None:
        if next(times, False):
            raise StateUnavailable

    FlakyOrders.before_read.append(away)
    with small_pages():
        task_id = pipeline.submit(*DAYS)
        assert pipeline.work(task_id).state is State.SUCCEEDED
    assert keys_in(pipeline.read_file(task_id)) == whole_file()
