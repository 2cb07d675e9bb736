"""Queues: which one a task waits in, who is served next, and when the database is spared."""

import time
from collections import Counter
from collections.abc import Sequence

import pytest
from redis import Redis

from config.worker import GROUPS
from exports.contracts import CommittedSegment, QueueName, Shard, Step
from exports.pipeline import plan, render, shard, steps, sweep, workers
from exports.state.keys import TaskRef
from exports.state.replies import Claim, NoClaim, WorkerSign
from exports.state.store import Store, store
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.integration.test_state_store import DIGEST, TRACE, claim, request

WINDOW = ("2026-09-14", "2026-09-14")
SLOW_MS, USUAL_MS = 260.0, 120.0


def planned(name: str, *, queue: QueueName = QueueName.NORMAL, owner: str = "ann", shards: int = 100) -> TaskRef:
    """A task that waits for lanes."""
    state, task = store(), TaskRef(f"exp_{name}", owner, name)
    assert state.submit(task, request(name, owner), fingerprint="f", traceparent=TRACE) is None
    held = claim(state, task, Step.PLAN)
    parts = [Shard(f"{number:03d}", "", "", 10) for number in range(shards)]
    word = state.write_plan(
        held, parts, digest=DIGEST, as_of="2026-09-04T00:00:00+00:00", file_name="o.csv", queue=queue
    )
    assert word == "ok"
    return task


def proposed(group: str, *, help_others: bool = True) -> list[str]:
    """What a lane of a group asks for a shard, one task after the other."""
    worker = workers.Worker()
    worker.join(group, serves=GROUPS[group].reads(help_others=help_others))
    return [found.task_id.removeprefix("exp_") for found in store().next_tasks(Step.SHARD, 100, ranks=worker.ranks)]


def serve(tasks: Sequence[TaskRef], *, turns: int, works_s: float = 0.0) -> Counter[str]:
    """Claim what is proposed first, and give it back. works_s: for how long it is held. The turns of each owner."""
    state, refs, served = store(), {task.id: task for task in tasks}, Counter[str]()
    for _ in range(turns):
        task = refs[state.next_tasks(Step.SHARD, 1)[0].task_id]
        held = claim(state, task, Step.SHARD)
        if works_s and task.owner == "ann":
            time.sleep(works_s)
            state.renew(held)
        state.release(held)
        served[task.owner] += 1
    return served


# --- which queue ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(("rows", "queue"), [(0, "fast"), (10, "fast"), (11, "normal"), (20, "normal"), (21, "slow")])
def test_the_rows_of_the_plan_choose_the_queue(sqlite_orders: OrdersDatabase, rows: int, queue: str) -> None:
    sqlite_orders.insert({"id": number, "created_at": utc("2026-09-14 12:00:00")} for number in range(1, rows + 1))
    with exports_settings(fast_rows=10, normal_rows=20, page_rows=5, page_rows_min=5):
        task_id = pipeline.submit(*WINDOW)
        assert pipeline.view(task_id).queue is None
        steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
    assert pipeline.view(task_id).queue == queue


@pytest.mark.usefixtures("desk")
def test_a_task_that_runs_for_longer_than_its_queue_allows_moves_on(redis_db: "Redis[bytes]") -> None:
    task = planned("a", queue=QueueName.FAST)
    seen = []
    with exports_settings(fast_s=20, normal_s=300):
        for run_ms in (19_999, 20_000, 299_999, 300_000, 900_000):
            redis_db.hset("export:task:exp_a", "run_ms", run_ms)
            sweep.end_stuck()
            view = store().read(task.id)
            assert view is not None
            seen.append(view.queue)
    assert seen == ["fast", "normal", "normal", "slow", "slow"]
    assert [event.detail for event in store().events(task.id) if event.name == "moved"] == ["normal", "slow"]


# --- who is served next ---------------------------------------------------------------------------


@pytest.mark.usefixtures("desk")
def test_each_group_serves_its_own_queue_first_and_helps_where_it_may() -> None:
    for queue in (QueueName.SLOW, QueueName.NORMAL, QueueName.FAST):
        planned(str(queue), queue=queue)
    assert proposed("lanes") == ["fast", "slow", "normal"]
    assert proposed("fast") == ["fast"]
    assert proposed("normal") == ["normal", "fast", "slow"]
    assert proposed("slow") == ["slow", "normal", "fast"]
    assert proposed("normal", help_others=False) == ["normal"]
    assert proposed("slow", help_others=False) == ["slow"]
    assert proposed("lanes", help_others=False) == ["fast", "slow", "normal"]


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("group", [name for name, group in GROUPS.items() if group.finishes])
def test_whoever_finishes_does_so_for_every_queue(
    monkeypatch: pytest.MonkeyPatch, sqlite_orders: OrdersDatabase, group: str
) -> None:
    sqlite_orders.insert({"id": number, "created_at": utc("2026-09-14 12:00:00")} for number in range(1, 31))
    with exports_settings(fast_rows=10, normal_rows=20, page_rows=5, page_rows_min=5):
        task_id = pipeline.submit(*WINDOW)
        steps.run_slice(Step.PLAN, plan.plan_task)
        steps.run_slice(Step.SHARD, lambda held: shard.fetch_shard(held) and None)
        worker = workers.Worker()
        worker.join(group, serves=GROUPS[group].reads(help_others=False))
        monkeypatch.setattr(workers, "current", lambda: worker)
        steps.run_slice(Step.RENDER, render.render_task)
    assert pipeline.view(task_id).state == "succeeded"


def test_a_group_is_woken_for_what_it_serves_on_its_own_spool() -> None:
    assert GROUPS["lanes"].places("s", help_others=False) == {"fast.s", "normal.s", "slow.s", "finish.s"}
    assert GROUPS["fast"].places("s", help_others=True) == {"plan", "fast.s"}
    assert GROUPS["slow"].places("s", help_others=False) == {"slow.s", "finish.s"}
    assert GROUPS["slow"].places("s", help_others=True) == {"fast.s", "normal.s", "slow.s", "finish.s"}
    assert GROUPS["notify"].places("s", help_others=True) == {"notify"}


@pytest.mark.usefixtures("redis_db")
def test_one_task_of_an_owner_gets_as_many_turns_as_twenty_of_another() -> None:
    tasks = [planned(f"ann-{number:02d}") for number in range(20)] + [planned("bob", owner="bob")]
    assert serve(tasks, turns=40) == {"ann": 20, "bob": 20}


@pytest.mark.usefixtures("redis_db")
def test_turns_are_shared_by_weight() -> None:
    with exports_settings(owner_weights=("bob=3", "eve=4")):
        tasks = [planned(owner, owner=owner) for owner in ("ann", "bob", "eve")]
        assert serve(tasks, turns=80) == {"ann": 10, "bob": 30, "eve": 40}


@pytest.mark.usefixtures("redis_db")
def test_an_owner_whose_pages_take_long_gets_fewer_turns() -> None:
    served = serve([planned("ann"), planned("bob", owner="bob")], turns=12, works_s=0.3)
    assert served["bob"] >= 2 * served["ann"]


@pytest.mark.usefixtures("redis_db")
def test_an_owner_that_was_away_has_saved_no_turns() -> None:
    tasks = [planned("ann"), planned("bob", owner="bob")]
    serve(tasks, turns=10)
    tasks.append(planned("eve", owner="eve"))
    assert serve(tasks, turns=30) == {"ann": 10, "bob": 10, "eve": 10}


@pytest.mark.usefixtures("redis_db")
def test_an_owner_that_is_served_no_more_is_forgotten(redis_db: "Redis[bytes]") -> None:
    tasks = [planned("ann"), planned("bob", owner="bob")]
    serve(tasks, turns=4)
    store().cancel(tasks[1])
    serve(tasks[:1], turns=4)
    assert b"bob" not in redis_db.zrange("export:shares", 0, -1)


@pytest.mark.usefixtures("desk")
def test_a_small_export_overtakes_twenty_large_ones(sqlite_orders: OrdersDatabase) -> None:
    """One of 2,000 rows among 20 of 400,000, all with a hundredth of the rows: the worker that plans does all of it."""
    sqlite_orders.insert({"id": number, "created_at": utc("2026-09-14 12:00:00")} for number in range(1, 21))
    large = [planned(f"large-{number:02d}", owner=f"owner-{number % 5}") for number in range(20)]
    with exports_settings(page_rows=20, page_rows_min=20, database_leases=8):
        assert [isinstance(try_claim(task), Claim) for task in large[:4]] == [True] * 4
        task_id = pipeline.submit(*WINDOW)
        steps.run_slice(Step.PLAN, plan.plan_task)
    assert pipeline.view(task_id).state == "succeeded"


@pytest.mark.usefixtures("desk")
def test_a_long_plan_lets_others_take_their_turn(
    monkeypatch: pytest.MonkeyPatch, sqlite_orders: OrdersDatabase
) -> None:
    """A worker that plans a year goes on with it where it was, after those that came meanwhile."""
    from tests.kinds import FlakyOrders

    monkeypatch.setattr(steps, "_TURN_S", {Step.PLAN: 0.05})
    long, short = pipeline.submit("2026-08-01", "2026-08-20"), ""

    def slowly(shard_id: str) -> None:
        nonlocal short
        short = short or pipeline.submit("2026-09-14", "2026-09-14")
        counted.append(shard_id)
        time.sleep(0.02)

    counted: list[str] = []
    FlakyOrders.before_plan.append(slowly)
    with exports_settings(slice_ms=60_000):
        steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
    assert counted.index("2026-09-14") < 12 and len(counted) == 21
    assert [pipeline.view(task_id).phase for task_id in (long, short)] == ["fetch", "fetch"]


# --- when the database is spared ------------------------------------------------------------------


def read_pages(state: Store, held: Claim, *, pages: int, read_ms: float) -> None:
    segment = CommittedSegment("s", held.name, held.fence, 1, 10, 100, 7)
    cursor = state.shards(held.ref.id)[0].cursor
    for _ in range(pages):
        before, cursor = cursor, str(int(cursor or 0) + 10)
        state.commit(
            held, old_cursor=before, cursor=cursor, rows=10, segment=segment, took_ms=round(read_ms), read_ms=read_ms
        )


def try_claim(task: TaskRef) -> Claim | NoClaim:
    found = store().claim(task, Step.SHARD, worker="host:w", digest=DIGEST)
    if isinstance(found, Claim):
        store().renew(found)
    return found


@pytest.mark.usefixtures("redis_db")
def test_fewer_lanes_read_while_pages_take_twice_their_usual_time() -> None:
    with exports_settings(guard_leases=1):
        state = store()
        reading, waiting, small = planned("reading"), planned("waiting"), planned("small", queue=QueueName.FAST)
        held = claim(state, reading, Step.SHARD)
        read_pages(state, held, pages=70, read_ms=USUAL_MS)
        state.release(claim(state, waiting, Step.SHARD))
        read_pages(state, held, pages=60, read_ms=SLOW_MS)
        assert try_claim(waiting) == NoClaim("wait", 500)
        assert isinstance(try_claim(small), Claim)
        read_pages(state, held, pages=60, read_ms=USUAL_MS)
        assert isinstance(try_claim(waiting), Claim)
        read_pages(state, held, pages=1500, read_ms=SLOW_MS)
        assert isinstance(try_claim(waiting), Claim), "what stays becomes usual"


@pytest.mark.usefixtures("redis_db")
def test_pages_that_are_quick_anyway_slow_nobody_down() -> None:
    with exports_settings(guard_leases=1):
        state = store()
        held = claim(state, planned("reading"), Step.SHARD)
        read_pages(state, held, pages=70, read_ms=4)
        read_pages(state, held, pages=60, read_ms=40)
        assert isinstance(try_claim(planned("waiting")), Claim)


@pytest.mark.usefixtures("redis_db")
def test_the_last_lane_always_reads_so_that_times_are_known() -> None:
    with exports_settings(guard_leases=1):
        state = store()
        task = planned("reading")
        held = claim(state, task, Step.SHARD)
        read_pages(state, held, pages=70, read_ms=USUAL_MS)
        read_pages(state, held, pages=60, read_ms=SLOW_MS)
        state.release(held)
        assert isinstance(try_claim(task), Claim)


# --- what is told ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("redis_db")
def test_lengths_count_tasks_by_the_kind_of_their_next_step() -> None:
    for number, queue in enumerate((QueueName.FAST, QueueName.NORMAL, QueueName.NORMAL)):
        planned(str(number), queue=queue)
    planned("no-rows", shards=0)
    waits = TaskRef("exp_waits", "ann", "waits")
    store().submit(waits, request("waits"), fingerprint="f", traceparent=TRACE)
    assert store().queue_lengths() == {"plan": 1, "fast": 1, "normal": 2, "slow": 0, "finish": 1}


@pytest.mark.usefixtures("redis_db")
def test_a_worker_is_counted_once_as_started_again(redis_db: "Redis[bytes]") -> None:
    sign = WorkerSign("lanes", busy=True, spool="s", rss_mb=100)
    for name, reason in (("old", "slices"), ("fat", "memory"), ("stopped", "sigterm")):
        store().beat(name, sign)
        for _ in range(2):
            store().forget_worker(name, reason=reason)
    redis_db.hset("export:workers", "silent", "1|lanes|1|s|100")
    for _ in range(2):
        assert store().workers() == {}
    assert store().counters().restarts == {"slices": 1, "memory": 1, "died": 1}


@pytest.mark.usefixtures("redis_db")
def test_workers_of_older_and_newer_versions_are_understood(redis_db: "Redis[bytes]") -> None:
    now_ms = store().now_ms()
    redis_db.hset("export:workers", mapping={"older": f"{now_ms}|lanes|0", "newer": f"{now_ms}|lanes|1|s|100|and more"})
    assert store().workers() == {
        "older": WorkerSign("lanes", busy=False, spool="", rss_mb=0),
        "newer": WorkerSign("lanes", busy=True, spool="s", rss_mb=100),
    }
