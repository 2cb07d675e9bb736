"""The state of a task against a real Valkey: what each transition changes, and that a repeated one changes nothing."""

import datetime as dt
import threading
import time
from collections.abc import Callable

import pytest
from redis import Redis

from exports.contracts import CommittedSegment, Drift, ExportRequest, Format, Phase, Recount, Shard, State, Step
from exports.state.keys import TaskRef
from exports.state.replies import Claim, NoClaim
from exports.state.store import Store, store
from exports.state.watching import Match

pytestmark = pytest.mark.usefixtures("redis_db")

TRACE = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"
DIGEST = "d" * 64


def request(request_id: str = "r1", owner: str = "ann") -> ExportRequest:
    return ExportRequest("orders", owner, request_id, dt.date(2026, 9, 1), dt.date(2026, 9, 3), Format.CSV)


def ref(task_id: str = "exp_1", request_id: str = "r1", owner: str = "ann") -> TaskRef:
    return TaskRef(task_id, owner, request_id)


@pytest.fixture
def state() -> Store:
    return store()


def submit(state: Store, task: TaskRef | None = None) -> TaskRef:
    task = task or ref()
    assert state.submit(task, request(task.request_id, task.owner), fingerprint="f", traceparent=TRACE) is None
    return task


def claim(state: Store, task: TaskRef, step: Step, *, digest: str = DIGEST, worker: str = "host:w") -> Claim:
    found = state.claim(task, step, worker=worker, digest=digest)
    assert isinstance(found, Claim), found
    return found


def planned(state: Store, *shards: Shard) -> TaskRef:
    task = submit(state)
    held = claim(state, task, Step.PLAN)
    for shard in shards:
        state.keep_plan(held, shard.id, shard.bounds)
    word = state.write_plan(held, shards, digest=DIGEST, as_of="2026-09-04T00:00:00+00:00", file_name="o.csv")
    assert word == "ok"
    return task


def shard(name: str, rows: int = 10) -> Shard:
    return Shard(name, name, f"bounds of {name}", rows)


def commit(state: Store, held: Claim, *, old: str, new: str, rows: int, pages: int = 1) -> str:
    segment = CommittedSegment(
        f"{held.name}-{held.fence}-x", held.name, held.fence, pages, rows * pages, 100 * pages, 7
    )
    return state.commit(held, old_cursor=old, cursor=new, rows=rows, segment=segment, took_ms=5)


def test_a_task_runs_from_queued_to_succeeded(state: Store) -> None:
    task = planned(state, shard("a"), shard("b"))
    for name in ("a", "b"):
        held = claim(state, task, Step.SHARD)
        assert (held.name, held.constants) == (name, f"bounds of {name}")
        assert commit(state, held, old="", new="18446744073709551615", rows=10) == "ok"
        assert state.finish_shard(held, Recount(Drift.EXACT)) == ("last" if name == "b" else "ok")
    held = claim(state, task, Step.RENDER)
    assert state.write_recipe(held, size=99, sha256="s", object_key="exp_1/r1.csv", warnings=[]) == "ok"
    held = claim(state, task, Step.UPLOAD)
    assert (held.object_key, held.sha256) == ("exp_1/r1.csv", "s")
    assert state.publish(held) == "succeeded"
    view = state.read(task.id)
    assert view is not None
    assert (view.state, view.phase, view.processed, view.total) == (State.SUCCEEDED, Phase.UPLOAD, 20, 20)
    assert view.started_at is not None and view.finished_at is not None and view.started_at <= view.finished_at
    assert state.counters().states == {
        State.QUEUED: 1,
        State.RUNNING: 1,
        State.SUCCEEDED: 1,
        State.FAILED: 0,
        State.CANCELLED: 0,
    }
    assert state.counters().rows == 20
    assert state.counters().durations[Format.CSV].count == 1


def test_one_request_id_gives_one_task_to_a_hundred_racing_submits(state: Store) -> None:
    answers: list[str] = []
    barrier = threading.Barrier(100)

    def race(number: int) -> None:
        barrier.wait()
        known = state.submit(ref(f"exp_{number}"), request(), fingerprint="f", traceparent=TRACE)
        answers.append(known[0] if known else f"exp_{number}")

    threads = [threading.Thread(target=race, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 100
    assert len(set(answers)) == 1
    assert state.owned("ann") == answers[:1]


def test_a_request_id_belongs_to_its_owner(state: Store) -> None:
    submit(state, ref("exp_1", "r", "ann"))
    submit(state, ref("exp_2", "r", "bob"))
    assert state.owned("ann") == ["exp_1"]
    assert state.owned("bob") == ["exp_2"]


def test_at_most_four_steps_of_a_task_are_held(state: Store) -> None:
    task = planned(state, *(shard(f"s{n}") for n in range(6)))
    held = [claim(state, task, Step.SHARD) for _ in range(4)]
    assert len({found.fence for found in held}) == 4
    assert state.claim(task, Step.SHARD, worker="host:w", digest=DIGEST) == NoClaim("full")
    state.release(held[0])
    assert claim(state, task, Step.SHARD).name == "s0"


def test_another_specification_changes_nothing(state: Store) -> None:
    task = planned(state, shard("a"))
    assert state.claim(task, Step.SHARD, worker="host:w", digest="other") == NoClaim("foreign")


def test_a_commit_repeated_after_a_lost_reply_counts_once(state: Store) -> None:
    task = planned(state, shard("a"))
    held = claim(state, task, Step.SHARD)
    for _ in range(2):
        assert commit(state, held, old="", new="5", rows=5) == "ok"
    view = state.read(task.id)
    assert view is not None and view.processed == 5
    assert state.counters().rows == 5


def test_a_commit_with_another_cursor_is_refused(state: Store) -> None:
    task = planned(state, shard("a"))
    held = claim(state, task, Step.SHARD)
    commit(state, held, old="", new="5", rows=5)
    assert commit(state, held, old="", new="9", rows=4) == "lost"


def test_a_stale_claim_cannot_commit(state: Store) -> None:
    task = planned(state, shard("a"))
    stale = claim(state, task, Step.SHARD)
    lease = state.leases([task.id])[task.id][0]
    assert state.recover(task, lease, proven=True, counted=False) == "ok"
    fresh = claim(state, task, Step.SHARD)
    assert fresh.fence > stale.fence
    assert commit(state, stale, old="", new="5", rows=5) == "lost"
    assert commit(state, fresh, old="", new="5", rows=5) == "ok"


def test_a_live_lease_is_not_taken_back(state: Store) -> None:
    task = planned(state, shard("a"))
    claim(state, task, Step.SHARD)
    lease = state.leases([task.id])[task.id][0]
    assert state.recover(task, lease, proven=False, counted=True) == "alive"


def test_a_page_that_loses_its_worker_three_times_fails_the_task(state: Store) -> None:
    task = planned(state, shard("a"))
    for word in ("ok", "ok", "failed"):
        held = claim(state, task, Step.SHARD)
        state.renew(held, begun=True)
        lease = state.leases([task.id])[task.id][0]
        assert state.recover(task, lease, proven=True, counted=True) == word
    view = state.read(task.id)
    assert view is not None and view.failure is not None
    assert (view.failure.code, view.failure.phase, view.failure.shard_id, view.failure.page) == (
        "poison",
        Phase.FETCH,
        "a",
        1,
    )


def test_tries_are_used_up_then_the_task_fails_and_keeps_its_cursor(state: Store) -> None:
    task = planned(state, shard("a"))
    held = claim(state, task, Step.SHARD)
    commit(state, held, old="", new="k7", rows=5)
    words = [state.retry(held, "database_timeout")]
    while words[-1] == "retry":
        found = state.claim(task, Step.SHARD, worker="host:w", digest=DIGEST)
        if isinstance(found, NoClaim):
            assert found.reason == "wait"
            threading.Event().wait(found.wait_ms / 1000)
        else:
            words.append(state.retry(found, "database_timeout"))
    assert words == ["retry", "retry", "retry", "failed"]
    view = state.read(task.id)
    assert view is not None and view.failure is not None
    assert (view.failure.code, view.failure.page, view.failure.cursor, view.failure.attempts) == (
        "database_timeout",
        2,
        "k7",
        4,
    )
    assert [found.cursor for found in state.shards(task.id)] == ["k7"]


def test_a_rerun_goes_on_from_the_cursor(state: Store) -> None:
    task = planned(state, shard("a"))
    held = claim(state, task, Step.SHARD)
    commit(state, held, old="", new="k7", rows=5)
    assert state.fail(held, "disk_full", retryable=True) == "failed"
    assert state.rerun(task, digest=DIGEST, from_scratch=False) == "ok"
    view = state.read(task.id)
    assert view is not None
    assert (view.state, view.epoch, view.failure, view.started_at, view.processed) == (State.QUEUED, 2, None, None, 5)
    again = claim(state, task, Step.SHARD)
    assert again.record is not None and again.record.cursor == "k7"


def test_a_rerun_under_another_specification_needs_a_start_from_scratch(state: Store) -> None:
    task = planned(state, shard("a"))
    state.fail(claim(state, task, Step.SHARD), "unclassified", retryable=False)
    assert state.rerun(task, digest="other", from_scratch=False) == "foreign"
    assert state.rerun(task, digest="other", from_scratch=True) == "ok"
    assert claim(state, task, Step.PLAN).name == "plan"


def test_a_rerun_of_a_task_that_lost_a_key_needs_a_start_from_scratch(state: Store, redis_db: object) -> None:
    from redis import Redis

    assert isinstance(redis_db, Redis)
    task = planned(state, shard("a"))
    state.fail(claim(state, task, Step.SHARD), "unclassified", retryable=False)
    redis_db.delete("export:plan:exp_1")
    assert state.rerun(task, digest=DIGEST, from_scratch=False) == "lost"
    assert state.rerun(task, digest=DIGEST, from_scratch=True) == "ok"


def test_a_page_is_halved_down_to_the_smallest_and_then_fails(state: Store) -> None:
    task = planned(state, shard("a"))
    held = claim(state, task, Step.SHARD)
    sizes = [2000, 1000, 500, 250, 200]
    assert [state.halve_page(held, page_rows=size) for size in sizes] == [
        ("ok", 1000),
        ("ok", 500),
        ("ok", 250),
        ("ok", 200),
        ("failed", 0),
    ]
    view = state.read(task.id)
    assert view is not None and view.failure is not None and view.failure.code == "page_too_large"


def test_a_halving_repeated_after_a_lost_reply_halves_once(state: Store) -> None:
    held = claim(state, planned(state, shard("a")), Step.SHARD)
    assert [state.halve_page(held, page_rows=2000) for _ in range(2)] == [("ok", 1000), ("ok", 1000)]


def test_a_submit_repeated_after_a_lost_reply_is_still_new(state: Store) -> None:
    for _ in range(2):
        assert state.submit(ref(), request(), fingerprint="f", traceparent=TRACE) is None
    assert state.counters().states[State.QUEUED] == 1


def test_a_rerun_repeated_after_a_lost_reply_starts_one_epoch(state: Store) -> None:
    task = planned(state, shard("a"))
    state.fail(claim(state, task, Step.SHARD), "unclassified", retryable=False)
    again = {"digest": DIGEST, "scratch": 0, "call": "one", "by": "", "page_rows": 0, "shards": ()}
    for _ in range(2):
        assert state._run("rerun_task", task, **again) == ["ok"]
    assert state.rerun(task, digest=DIGEST, from_scratch=False) == "refused"
    view = state.read(task.id)
    assert view is not None and view.epoch == 2


@pytest.mark.parametrize("phase", [Phase.RENDER, Phase.UPLOAD])
def test_a_rerun_of_a_shard_forgets_its_rows_alone_and_reads_before_it_renders(state: Store, phase: Phase) -> None:
    task = planned(state, shard("a"), shard("b"))
    for _ in range(2):
        held = claim(state, task, Step.SHARD)
        commit(state, held, old="", new="9", rows=10)
        state.finish_shard(held, Recount(Drift.EXACT))
    held = claim(state, task, Step.RENDER)
    if phase is Phase.UPLOAD:
        state.write_recipe(held, size=1, sha256="s", object_key="k", warnings=[])
        held = claim(state, task, Step.UPLOAD)
    state.fail(held, "store_unavailable", retryable=True)
    assert state.rerun(task, digest=DIGEST, from_scratch=False, again=["a", "none"]) == "unknown"
    assert state.rerun(task, digest=DIGEST, from_scratch=False, again=["a"], page_rows=500, by="olga: why") == "ok"
    view = state.read(task.id)
    assert view is not None and (view.phase, view.processed, view.total) == (Phase.FETCH, 10, 20)
    assert [segment.shard_id for segment in state.segments(task.id)] == ["b"]
    assert [(one.rows_written, one.page_rows, one.state) for one in state.shards(task.id)] == [
        (0, 500, "pending"), (10, 2000, "done"),
    ]  # fmt: skip
    assert state.events(task.id)[-1].detail == "olga: why"
    held = claim(state, task, Step.SHARD)
    assert held.name == "a"
    assert state.claim(task, Step.SHARD, worker="w", digest=DIGEST) == NoClaim("done")
    commit(state, held, old="", new="9", rows=10)
    assert state.finish_shard(held, Recount(Drift.EXACT)) == "last"
    claim(state, task, Step.RENDER)


def test_tasks_are_found_in_bounded_looks_without_a_gap_or_a_double(
    state: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exports.state.watching._SCAN", 7)
    names = [f"exp_{number:02}" for number in range(40)]
    for name in names:
        submit(state, ref(name, name, "ann" if int(name[-2:]) % 5 else "bob"))
    found, behind = [], None
    while page := state.find(State.QUEUED, Match(), limit=6, behind=behind):
        found += [place.task_id for place in page]
        behind = page[-1]
    assert sorted(found) == names
    assert len(state.find(State.QUEUED, Match(owner="bob"), limit=100)) == 8
    assert [place.task_id for place in state.find(State.QUEUED, Match(text="P_07"), limit=1)] == ["exp_07"]
    assert state.find(State.FAILED, Match(), limit=5) == []


def test_minutes_are_counted_and_old_ones_are_forgotten(state: Store, redis_db: "Redis[bytes]") -> None:
    held = claim(state, planned(state, shard("a")), Step.SHARD)
    commit(state, held, old="", new="9", rows=10)
    commit(state, held, old="", new="9", rows=10)
    state.fail(held, "unclassified", retryable=False)
    redis_db.hset("export:history", "1:rows", 5)
    signs = state.signs()
    assert signs.minutes[1] == {"rows": 5}
    assert sum(counts.get("rows", 0) for minute, counts in signs.minutes.items() if minute > 1) == 10
    assert sum(counts.get("failed", 0) for counts in signs.minutes.values()) == 1
    state.forget_minutes(state.now_ms())
    assert 1 not in state.signs().minutes and state.signs().minutes


def test_only_what_brings_a_task_on_counts_as_progress(state: Store, redis_db: "Redis[bytes]") -> None:
    held = claim(state, planned(state, shard("a")), Step.SHARD)

    def moved(act: Callable[[], object]) -> bool:
        redis_db.hset("export:task:exp_1", "progress_at", 1)
        act()
        return redis_db.hget("export:task:exp_1", "progress_at") != b"1"

    assert not moved(lambda: state.renew(held))
    assert not moved(lambda: state.retry(held, "database_timeout"))
    held = claim_soon(state)
    assert moved(lambda: commit(state, held, old="", new="9", rows=10))
    assert not moved(lambda: commit(state, held, old="", new="9", rows=10))
    assert moved(lambda: state.finish_shard(held, Recount(Drift.EXACT)))
    held = claim(state, ref(), Step.RENDER)
    assert moved(lambda: state.write_recipe(held, size=1, sha256="s", object_key="k", warnings=[]))


def claim_soon(state: Store) -> Claim:
    """The shard once its pause is over."""
    while not isinstance(found := state.claim(ref(), Step.SHARD, worker="host:w", digest=DIGEST), Claim):
        time.sleep(found.wait_ms / 1000)
    return found


def test_a_damaged_shard_starts_again_and_the_third_time_fails(state: Store) -> None:
    task = planned(state, shard("a"), shard("b"))
    for word in ("ok", "ok", "failed"):
        while isinstance(found := state.claim(task, Step.SHARD, worker="host:w", digest=DIGEST), Claim):
            assert found.record is not None
            commit(state, found, old=found.record.cursor, new="9", rows=10)
            state.finish_shard(found, Recount(Drift.EXACT))
        held = claim(state, task, Step.RENDER)
        assert state.reopen(held, ["a"]) == word
        if word == "ok":
            assert [segment.shard_id for segment in state.segments(task.id)] == ["b"]
    view = state.read(task.id)
    assert view is not None and view.failure is not None
    assert (view.failure.code, view.failure.phase) == ("spool_lost", Phase.RENDER)


@pytest.mark.parametrize("claimed", [False, True])
def test_a_cancel_ends_at_once_without_a_live_lease_else_with_the_last_release(state: Store, claimed: bool) -> None:
    task = planned(state, shard("a"), shard("b"))
    if not claimed:
        assert state.cancel(task) == "cancelled"
        return
    held = [claim(state, task, Step.SHARD), claim(state, task, Step.SHARD)]
    assert state.cancel(task) == "accepted"
    assert state.claim(task, Step.SHARD, worker="host:w", digest=DIGEST) == NoClaim("stop")
    assert commit(state, held[0], old="", new="5", rows=5) == "stop"
    assert state.release(held[0]) == "ok"
    assert state.release(held[1]) == "cancelled"
    assert state.cancel(task) == "already"


def test_an_accepted_cancel_wins_over_publish(state: Store) -> None:
    task = planned(state)
    state.write_recipe(claim(state, task, Step.RENDER), size=1, sha256="s", object_key="k", warnings=[])
    held = claim(state, task, Step.UPLOAD)
    assert state.cancel(task) == "accepted"
    assert state.publish(held) == "cancelled"


def test_keys_expire_together_after_the_end_and_never_before(state: Store, redis_db: object) -> None:
    from redis import Redis

    assert isinstance(redis_db, Redis)
    task = planned(state, shard("a"))
    held = claim(state, task, Step.SHARD)
    assert {redis_db.pttl(key) for key in redis_db.keys("export:*")} == {-1}
    commit(state, held, old="", new="1", rows=1)
    state.fail(held, "unclassified", retryable=False)
    mine = [key for key in redis_db.keys("export:*") if b":exp_1" in key or b":request:" in key]
    assert {redis_db.pexpiretime(key) for key in mine} == {redis_db.pexpiretime("export:task:exp_1")}
    assert len(mine) == 7
    state.rerun(task, digest=DIGEST, from_scratch=False)
    assert {redis_db.pttl(key) for key in mine if redis_db.exists(key)} == {-1}


def test_a_shard_record_of_an_integer_key_stays_below_64_bytes(state: Store, redis_db: object) -> None:
    from redis import Redis

    assert isinstance(redis_db, Redis)
    task = planned(state, shard("2026-09-01", rows=5_000_000))
    commit(state, claim(state, task, Step.SHARD), old="", new="9223372036854775807", rows=5_000_000)
    assert len(redis_db.hget("export:shards:exp_1", "2026-09-01")) <= 64
    assert redis_db.object("encoding", "export:shards:exp_1") == b"listpack"
