"""Random histories of one task against a model in plain Python: claims, commits, deaths, cancels, reruns in any order."""

import uuid
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from exports.conf import conf
from exports.contracts import CommittedSegment, Drift, Recount, State, Step
from exports.state.keys import TaskRef
from exports.state.replies import Claim, NoClaim
from exports.state.store import store
from tests.conftest import exports_settings
from tests.integration.test_state_store import DIGEST, TRACE, request, shard

ROWS = 3
PAGES = 2
SHARDS = ("a", "b", "c", "d", "e", "f")


@dataclass
class Model:
    """What the scripts must keep, written the slow and obvious way."""

    state: State = State.QUEUED
    phase: str = ""
    pages: dict[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    held: dict[str, Claim] = field(default_factory=dict)
    cancelling: bool = False
    epoch: int = 1

    def end(self, state: State) -> None:
        self.state = State.CANCELLED if self.cancelling else state
        self.held.clear()
        self.cancelling = False

    def drop(self, step: str) -> None:
        del self.held[step]
        if self.cancelling and not self.held:
            self.end(State.CANCELLED)


class TaskHistory(RuleBasedStateMachine):
    """One task. `stale` keeps every claim that was ever given, for zombies."""

    def __init__(self) -> None:
        super().__init__()
        self.state = store()
        self.model = Model()
        self.stale: list[Claim] = []
        self.fences: list[int] = []

    @initialize()
    def submit(self) -> None:
        number = uuid.uuid4()
        self.ref = TaskRef(f"exp_{number}", "ann", str(number))
        assert self.state.submit(self.ref, request(str(number)), fingerprint="f", traceparent=TRACE) is None

    def _held(self, data: st.DataObject, *steps: str) -> Claim:
        names = sorted(name for name in self.model.held if not steps or name in steps)
        return self.model.held[data.draw(st.sampled_from(names))]

    @rule(step=st.sampled_from(list(Step)))
    def claim(self, step: Step) -> None:
        model = self.model
        found = self.state.claim(self.ref, step, worker="host:w", digest=DIGEST)
        wanted = {"": Step.PLAN, "fetch": Step.SHARD}.get(model.phase) or Step(model.phase)
        open_steps = set(model.pages) - model.done if step is Step.SHARD else {str(step)}
        may = model.state in (State.QUEUED, State.RUNNING) and not model.cancelling and wanted is step
        if may and len(model.held) < 4 and open_steps - set(model.held):
            assert isinstance(found, Claim)
            assert found.name in open_steps - set(model.held)
            assert not self.fences or found.fence > self.fences[-1]
            self.fences.append(found.fence)
            self.stale.append(found)
            model.held[found.name] = found
            model.state = State.RUNNING
        else:
            assert isinstance(found, NoClaim)

    @precondition(lambda self: "plan" in self.model.held)
    @rule(count=st.integers(0, len(SHARDS)))
    def plan(self, count: int) -> None:
        held = self.model.held["plan"]
        shards = [shard(name, ROWS * PAGES) for name in SHARDS[:count]]
        for found in shards:
            assert self.state.keep_plan(held, found.id, found.bounds) == ("stop" if self.model.cancelling else "ok")
        word = self.state.write_plan(held, shards, digest=DIGEST, as_of="2026-01-01T00:00:00+00:00", file_name="f")
        if self.model.cancelling:
            assert word == "stop"
            return
        assert word == "ok"
        self.model.drop("plan")
        self.model.pages = dict.fromkeys(SHARDS[:count], 0)
        self.model.seen = dict.fromkeys(SHARDS[:count], 0)
        self.model.phase = "fetch" if count else "render"

    @precondition(lambda self: any(name in SHARDS for name in self.model.held))
    @rule(data=st.data(), lost_reply=st.booleans())
    def commit(self, data: st.DataObject, *, lost_reply: bool) -> None:
        held = self._held(data, *SHARDS)
        pages = self.model.pages[held.name]
        if pages == PAGES:
            return
        segment = CommittedSegment(f"{held.name}-{held.fence}", held.name, held.fence, 1, ROWS, 10, 1)
        for _ in range(1 + lost_reply):
            word = self.state.commit(
                held, old_cursor=str(pages or ""), cursor=str(pages + 1), rows=ROWS, segment=segment, took_ms=5
            )
            assert word == ("stop" if self.model.cancelling else "ok")
        self.model.pages[held.name] = pages + 1
        self.model.seen[held.name] = max(self.model.seen[held.name], (pages + 1) * ROWS)

    @precondition(lambda self: any(name in SHARDS for name in self.model.held))
    @rule(data=st.data(), lost_reply=st.booleans())
    def finish(self, data: st.DataObject, *, lost_reply: bool) -> None:
        held = self._held(data, *SHARDS)
        if self.model.pages[held.name] < PAGES:
            return
        word = self.state.finish_shard(held, Recount(Drift.EXACT))
        if self.model.cancelling:
            assert word == "stop"
            return
        self.model.done.add(held.name)
        self.model.drop(held.name)
        last = self.model.done == set(self.model.pages)
        assert word == ("last" if last else "ok")
        if last:
            self.model.phase = "render"
        if lost_reply:
            assert self.state.finish_shard(held, Recount(Drift.EXACT)) == "ok"

    @precondition(lambda self: "render" in self.model.held)
    @rule()
    def render(self) -> None:
        held = self.model.held["render"]
        word = self.state.write_recipe(held, size=1, sha256="s", object_key="k", warnings=[])
        assert word == ("stop" if self.model.cancelling else "ok")
        if word == "ok":
            self.model.drop("render")
            self.model.phase = "upload"

    @precondition(lambda self: self.model.held.keys() & {"render", "upload"})
    @rule(data=st.data())
    def reopen(self, data: st.DataObject) -> None:
        held = self._held(data, "render", "upload")
        shards = (
            data.draw(st.lists(st.sampled_from(sorted(self.model.pages)), max_size=2, unique=True))
            if self.model.pages
            else []
        )
        word = self.state.reopen(held, shards)
        if word == "failed":
            self.model.end(State.FAILED)
            return
        if self.model.cancelling:
            self.model.drop(held.name)
            return
        self.model.drop(held.name)
        self.model.phase = "fetch" if shards else "render"
        self.model.done -= set(shards)
        self.model.pages |= dict.fromkeys(shards, 0)

    @precondition(lambda self: "upload" in self.model.held)
    @rule(lost_reply=st.booleans())
    def publish(self, *, lost_reply: bool) -> None:
        held = self.model.held["upload"]
        word = self.state.publish(held)
        self.model.end(State.SUCCEEDED)
        assert word == self.model.state
        if lost_reply and word == "succeeded":
            assert self.state.publish(held) == "succeeded"

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), how=st.sampled_from(["release", "recover", "fail"]))
    def leave(self, data: st.DataObject, how: str) -> None:
        held = self._held(data)
        if how == "release":
            self.state.release(held)
            self.model.drop(held.name)
        elif how == "fail":
            word = self.state.fail(held, "unclassified", retryable=False)
            self.model.end(State.FAILED)
            assert word == self.model.state
        else:
            lease = next(found for found in self.state.leases([self.ref.id])[self.ref.id] if found.step == held.name)
            self.state.recover(self.ref, lease, proven=True, counted=False)
            self.model.drop(held.name)

    @rule()
    def cancel(self) -> None:
        word = self.state.cancel(self.ref)
        if self.model.state is State.SUCCEEDED:
            assert word == "refused"
        elif self.model.state is State.CANCELLED:
            assert word == "already"
        elif self.model.held:
            assert word == "accepted"
            self.model.cancelling = True
        else:
            assert word == "cancelled"
            self.model.state = State.CANCELLED

    @rule()
    def rerun(self) -> None:
        word = self.state.rerun(self.ref, digest=DIGEST, from_scratch=False)
        if self.model.state is not State.FAILED:
            assert word == "refused"
            return
        assert word == "ok"
        self.model.state = State.QUEUED
        self.model.epoch += 1
        self.model.seen = {name: pages * ROWS for name, pages in self.model.pages.items()}

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def wake_a_zombie(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.stale))
        if held in self.model.held.values():
            return
        segment = CommittedSegment("zombie", held.name, held.fence, 1, 1, 1, 1)
        assert self.state.renew(held) == "lost"
        assert self.state.commit(held, old_cursor="", cursor="z", rows=1, segment=segment, took_ms=5) == "lost"
        assert self.state.fail(held, "unclassified", retryable=False) == "lost"
        assert self.state.release(held) == "lost"

    @invariant()
    def the_reader_sees_what_the_model_says(self) -> None:
        if not hasattr(self, "ref"):
            return
        model, view = self.model, self.state.read(self.ref.id)
        assert view is not None
        assert (view.state, view.phase or "", view.epoch) == (model.state, model.phase, model.epoch)
        assert view.shards_done == len(model.done)
        assert (view.cancel_requested_at is not None) == model.cancelling
        assert (view.failure is not None) == (model.state is State.FAILED)
        assert (view.finished_at is not None) == model.state.ended
        if model.state is State.SUCCEEDED:
            assert view.processed == view.total == ROWS * PAGES * len(model.pages)
        else:
            assert view.processed == sum(model.seen.values())
            assert view.total is None or view.processed <= view.total
        leases = {lease.step: lease.claim for lease in self.state.leases([self.ref.id])[self.ref.id]}
        assert leases == {name: held.claim_id for name, held in model.held.items()}


@pytest.mark.usefixtures("redis_db")
def test_every_history_of_a_task_agrees_with_the_model() -> None:
    with exports_settings(database_leases=1000, lease_ms=3_600_000, redis_url=conf().redis_url):
        run_state_machine_as_test(
            TaskHistory,
            settings=settings(
                max_examples=100,
                stateful_step_count=50,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                database=None,
            ),
        )
