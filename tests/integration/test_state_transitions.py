"""Every script against every state: what the table allows happens, what it does not leaves every byte as it was."""

from collections.abc import Callable

import pytest
from redis import Redis

from exports.contracts import CommittedSegment, Drift, OpenUpload, Recount, State, Step, StoredPart
from exports.state import keys, scripts
from exports.state.keys import TaskRef
from exports.state.machine import TRANSITIONS
from exports.state.replies import Claim, Lease
from exports.state.store import Store, store
from tests.integration.test_state_store import DIGEST, TRACE, claim, planned, ref, request, shard

Act = Callable[[Store, TaskRef, Claim | None], object]

UPLOAD = OpenUpload("exp_1/r1.csv", "s" * 64, "id", 8 << 20)
NOBODY = "0" * 32


def _claim_of(task: TaskRef, held: Claim | None, state: Store) -> Claim:
    """The claim that holds the step, or one that a task of this state may have had."""
    if held is not None:
        return held
    state_of_another = planned_elsewhere(state)
    return Claim(
        **{name: getattr(state_of_another, name) for name in Claim.__slots__} | {"ref": task, "claim_id": NOBODY}
    )


def planned_elsewhere(state: Store) -> Claim:
    other = TaskRef("exp_other", "ann", "other")
    if state.read(other.id) is None:
        state.submit(other, request("other"), fingerprint="f", traceparent=TRACE)
        first = claim(state, other, Step.PLAN)
        state.write_plan(first, [shard("a")], digest=DIGEST, as_of="2026-01-01T00:00:00+00:00", file_name="f")
        claim(state, other, Step.SHARD)
    lease = state.leases([other.id])[other.id][0]
    task_request = state.request(other.id)
    assert task_request is not None
    return Claim(
        ref=other,
        step=Step.SHARD,
        name="a",
        fence=lease.fence,
        claim_id=lease.claim,
        record=None,
        constants="",
        request=task_request,
        epoch=1,
        as_of="",
        object_key="",
        sha256="",
        queue=None,
        planned_rows=0,
        traceparent=TRACE,
        starts_task=False,
    )


def _segment(held: Claim) -> CommittedSegment:
    return CommittedSegment("seg", held.name, held.fence, 1, 3, 30, 1)


def _lease(held: Claim) -> Lease:
    return Lease(held.name, 0, held.fence, held.claim_id, True, "host:w")


def _on(act: Callable[[Store, Claim], object]) -> Act:
    return lambda state, task, held: act(state, _claim_of(task, held, state))


ACTS: dict[str, Act] = {
    "claim_step": lambda state, task, _: [state.claim(task, step, worker="host:w", digest=DIGEST) for step in Step],
    "renew_lease": _on(lambda state, held: state.renew(held)),
    "keep_plan": _on(lambda state, held: state.keep_plan(held, "z", "v")),
    "write_plan": _on(
        lambda state, held: state.write_plan(
            held, [shard("z")], digest=DIGEST, as_of="2026-01-01T00:00:00+00:00", file_name="f"
        )
    ),
    "commit_page": _on(
        lambda state, held: state.commit(held, old_cursor="", cursor="3", rows=3, segment=_segment(held), took_ms=5)
    ),
    "finish_shard": _on(lambda state, held: state.finish_shard(held, Recount(Drift.EXACT))),
    "write_recipe": _on(lambda state, held: state.write_recipe(held, size=1, sha256="s", object_key="k", warnings=[])),
    "begin_upload": _on(lambda state, held: state.begin_upload(held, UPLOAD)),
    "record_part": _on(lambda state, held: state.record_part(held, UPLOAD, number=1, part=StoredPart("e", "m"))),
    "retry_step": _on(lambda state, held: state.retry(held, "database_timeout")),
    "halve_page": _on(lambda state, held: state.halve_page(held, page_rows=2000)),
    "reopen_shard": _on(lambda state, held: state.reopen(held, ["a"])),
    "recover_step": _on(lambda state, held: state.recover(held.ref, _lease(held), proven=True, counted=True)),
    "fail_task": _on(lambda state, held: state.fail(held, "unclassified", retryable=False)),
    "release_step": _on(lambda state, held: state.release(held)),
    "publish_task": _on(lambda state, held: state.publish(held)),
    "complete_cancel": lambda state, task, _: state.complete_cancel(task),
    "fail_foreign": lambda state, task, _: state.fail_foreign(task),
    "fail_stranded": lambda state, task, _: state.fail_stranded(task, alive=False),
    "fail_overdue": lambda state, task, _: state.fail_overdue(task),
    "move_task": lambda state, task, _: state.move(task),
    "mark_stalled": lambda state, task, _: state.mark_stalled(task),
    "cancel_task": lambda state, task, _: state.cancel(task),
    "append_audit": lambda state, task, _: state.append_audit(task, action="a", result="r", address="", by="ann"),
    "delete_task": lambda state, task, _: state.delete(task, by="ops", reason="why"),
    "rerun_task": lambda state, task, _: state.rerun(task, digest=DIGEST, from_scratch=False),
}


def _queued(state: Store) -> Claim | None:
    assert state.submit(ref(), request(), fingerprint="f", traceparent=TRACE) is None
    return None


def _running(state: Store) -> Claim | None:
    return claim(state, planned(state, shard("a")), Step.SHARD)


def _succeeded(state: Store) -> Claim | None:
    task = planned(state)
    state.write_recipe(claim(state, task, Step.RENDER), size=1, sha256="s", object_key="k", warnings=[])
    state.publish(claim(state, task, Step.UPLOAD))
    return None


def _failed(state: Store) -> Claim | None:
    held = _running(state)
    assert held is not None
    state.fail(held, "unclassified", retryable=False)
    return None


def _cancelled(state: Store) -> Claim | None:
    _queued(state)
    state.cancel(ref())
    return None


def _planning(state: Store) -> Claim | None:
    _queued(state)
    return claim(state, ref(), Step.PLAN)


def _rendering(state: Store) -> Claim | None:
    task = planned(state, shard("a"))
    state.finish_shard(claim(state, task, Step.SHARD), Recount(Drift.EXACT))
    return claim(state, task, Step.RENDER)


def _uploading(state: Store) -> Claim | None:
    held = _rendering(state)
    assert held is not None
    state.write_recipe(held, size=1, sha256="s", object_key="k", warnings=[])
    return claim(state, held.ref, Step.UPLOAD)


RUNNING = {
    "keep_plan": _planning,
    "write_plan": _planning,
    "write_recipe": _rendering,
    "reopen_shard": _rendering,
    "begin_upload": _uploading,
    "record_part": _uploading,
    "publish_task": _uploading,
}
"""How a running task is reached for a script that works on another step than a shard."""

REACH = {
    State.QUEUED: _queued,
    State.RUNNING: _running,
    State.SUCCEEDED: _succeeded,
    State.FAILED: _failed,
    State.CANCELLED: _cancelled,
}


def dump(client: "Redis[bytes]") -> dict[bytes, tuple[bytes | None, int]]:
    """Every key of the task and of all tasks together, with its bytes and its expiry."""
    return {
        key: (client.dump(key), client.pexpiretime(key))
        for key in sorted(client.keys("export:*"))
        if b"exp_other" not in key
    }


def test_every_script_that_moves_a_task_is_in_the_table() -> None:
    without = {"submit_task", "read_task", "find_tasks", "next_tasks", "settle_event", "forget_worker"} | {
        name for name in scripts.all_names() if "callback" in name
    }
    assert set(scripts.all_names()) - without == set(TRANSITIONS) == set(ACTS)


@pytest.mark.parametrize("before", list(State))
@pytest.mark.parametrize("name", sorted(TRANSITIONS))
def test_a_script_moves_a_task_only_as_the_table_says(redis_db: "Redis[bytes]", name: str, before: State) -> None:
    state = store()
    planned_elsewhere(state)
    reach = RUNNING.get(name, _running) if before is State.RUNNING else REACH[before]
    held = reach(state)
    found = state.read("exp_1")
    assert found is not None and found.state is before
    kept = dump(redis_db)
    ACTS[name](state, ref(), held)
    view = state.read("exp_1")
    assert view is not None
    if before in TRANSITIONS[name]:
        assert view.state in TRANSITIONS[name][before]
    else:
        assert dump(redis_db) == kept


@pytest.mark.parametrize(
    "name",
    sorted(
        set(TRANSITIONS)
        - {
            "claim_step",
            "cancel_task",
            "complete_cancel",
            "fail_foreign",
            "fail_stranded",
            "fail_overdue",
            "move_task",
            "mark_stalled",
            "rerun_task",
            "delete_task",
            "append_audit",
        }
    ),
)
def test_a_script_of_a_claim_that_lost_its_lease_changes_nothing(redis_db: "Redis[bytes]", name: str) -> None:
    state = store()
    planned_elsewhere(state)
    _running(state)
    kept = dump(redis_db)
    ACTS[name](state, ref(), None)
    assert dump(redis_db) == kept


@pytest.mark.parametrize(
    "name", ["claim_step", "renew_lease", "complete_cancel", "cancel_task", "delete_task", "append_audit"]
)
def test_no_script_makes_a_task_that_is_not_there(redis_db: "Redis[bytes]", name: str) -> None:
    state = store()
    planned_elsewhere(state)
    kept = dump(redis_db)
    ACTS[name](state, ref(), None)
    assert dump(redis_db) == kept
    assert keys.of_task("task", "exp_1").encode() not in kept
