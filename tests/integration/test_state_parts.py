"""The parts of an upload in Redis: under the claim, of one upload, and gone with the end."""

import pytest
import redis

from exports.contracts import Drift, OpenUpload, Recount, State, Step, StoredPart
from exports.state.replies import Claim
from exports.state.store import Store, store
from tests.integration.test_state_store import claim, planned, shard

pytestmark = pytest.mark.usefixtures("redis_db")

ONE = OpenUpload("exp_1/r1-aaaa.csv", "a" * 64, "id|of.the_store", 8 << 20)
OTHER = OpenUpload("exp_1/r2-bbbb.csv", "b" * 64, "other", 8 << 20)
PART = StoredPart("an|etag", "0" * 32)


@pytest.fixture
def state() -> Store:
    return store()


@pytest.fixture
def held(state: Store) -> Claim:
    """A claimed upload."""
    task = planned(state, shard("a"))
    state.finish_shard(claim(state, task, Step.SHARD), Recount(Drift.EXACT))
    state.write_recipe(claim(state, task, Step.RENDER), size=1, sha256=ONE.sha256, object_key=ONE.key, warnings=[])
    return claim(state, task, Step.UPLOAD)


def recover(state: Store, held: Claim) -> None:
    lease = state.leases([held.ref.id])[held.ref.id][0]
    assert state.recover(held.ref, lease, proven=True, counted=True) == "ok"


def test_an_upload_and_its_parts_are_read_as_they_were_written(state: Store, held: Claim) -> None:
    assert state.upload("exp_1") is None
    assert state.begin_upload(held, ONE) == "ok"
    assert state.upload("exp_1") == (ONE, {})
    for _ in range(2):
        assert state.record_part(held, ONE, number=2, part=PART) == "ok"
    assert state.upload("exp_1") == (ONE, {2: PART})


def test_a_new_upload_forgets_the_parts_of_the_other_and_takes_none_for_it(state: Store, held: Claim) -> None:
    state.begin_upload(held, ONE)
    state.record_part(held, ONE, number=1, part=PART)
    assert state.begin_upload(held, OTHER) == "ok"
    assert state.record_part(held, ONE, number=2, part=PART) == "lost"
    assert state.upload("exp_1") == (OTHER, {})


def test_a_claim_that_was_lost_records_nothing(state: Store, held: Claim) -> None:
    state.begin_upload(held, ONE)
    recover(state, held)
    claim(state, held.ref, Step.UPLOAD)
    assert state.begin_upload(held, OTHER) == "lost"
    assert state.record_part(held, ONE, number=1, part=PART) == "lost"
    assert state.upload("exp_1") == (ONE, {})


def test_a_cancel_stops_an_upload_and_keeps_what_was_taken_till_the_end(state: Store, held: Claim) -> None:
    state.begin_upload(held, ONE)
    state.cancel(held.ref)
    assert state.record_part(held, ONE, number=1, part=PART) == "stop"
    assert state.begin_upload(held, OTHER) == "stop"
    assert state.upload("exp_1") == (ONE, {1: PART})
    assert state.release(held) == State.CANCELLED
    assert state.upload("exp_1") is None


def test_more_parts_than_ever_forget_failed_tries_and_the_same_ones_do_not(state: Store, held: Claim) -> None:
    """A store that takes parts is tried for as long as it takes more; one that loses them again and again is not."""
    for upload in (ONE, OTHER):
        for number in (1, 2):
            state.begin_upload(held, upload) if number == 1 else None
            state.record_part(held, upload, number=number, part=PART)
            assert state.retry(held, "store_unavailable", part=7) == "retry"
            held = _claimed_when_due(state, held)
    # Two tries are used up by the second upload, which never had more parts than the first.
    assert state.retry(held, "store_unavailable", part=7) == "failed"
    view = state.read("exp_1")
    assert view is not None and view.failure is not None
    assert (view.failure.phase, view.failure.page, view.failure.attempts) == ("upload", 7, 4)


def _claimed_when_due(state: Store, held: Claim) -> Claim:
    import time

    deadline = time.monotonic() + 20
    while True:
        found = state.claim(held.ref, Step.UPLOAD, worker="host:w", digest="d" * 64)
        if isinstance(found, Claim):
            return found
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_part_renews_the_lease(state: Store, held: Claim) -> None:
    state.begin_upload(held, ONE)
    before = state.leases(["exp_1"])["exp_1"][0].expiry_ms
    while state.now_ms() <= before - 2000:
        pass
    state.record_part(held, ONE, number=1, part=PART)
    assert state.leases(["exp_1"])["exp_1"][0].expiry_ms > before


def test_parts_survive_a_failure_and_a_rerun_and_go_with_the_start_from_scratch(
    state: Store, held: Claim, redis_db: "redis.Redis[bytes]"
) -> None:
    state.begin_upload(held, ONE)
    state.record_part(held, ONE, number=1, part=PART)
    state.fail(held, "store_unavailable", retryable=True)
    assert redis_db.pttl("export:parts:exp_1") > 0
    assert state.rerun(held.ref, digest="d" * 64, from_scratch=False) == "ok"
    assert redis_db.pttl("export:parts:exp_1") == -1
    assert state.upload("exp_1") == (ONE, {1: PART})
    state.fail(claim(state, held.ref, Step.UPLOAD), "store_unavailable", retryable=True)
    assert state.rerun(held.ref, digest="d" * 64, from_scratch=True) == "ok"
    assert state.upload("exp_1") is None
