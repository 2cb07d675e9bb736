"""What the four stages share: claiming a step, holding its lease, and what an error does to it.

A stage gives `run_slice` a function that performs one claimed step. Whatever that function raises becomes a
transition here, the only place with a broad `except`.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dramatiq.middleware import Interrupt

from exports import storage
from exports.conf import conf
from exports.contracts import ExportRequest, Step
from exports.errors import (
    ExportError,
    LeaseLost,
    SegmentDamaged,
    SettingInvalid,
    SpoolFull,
    StateUnavailable,
    StepFailed,
    StoreUnavailable,
    TaskStopped,
)
from exports.pipeline import endings, hints, workers
from exports.pipeline.specification import specify
from exports.state.keys import TaskRef, ref_of
from exports.state.reader import EQUAL
from exports.state.replies import Claim, NoClaim
from exports.state.store import store
from exports.telemetry import logs, spans

_events = logs.events(__name__)
_PROPOSALS = 200
_PATIENCE = {Step.PLAN: 1, Step.SHARD: 1, Step.RENDER: 10, Step.UPLOAD: 10}
"""Page deadlines without progress after which a step no longer renews its lease: forcing a large file to disk is one call."""
_NAP_S = 0.5
_TURN_S = {Step.PLAN: 0.5}
"""How long one task is planned before others take their turn: what was counted is kept, so little is lost by it."""


class SliceOver(ExportError):
    """The lane's time is over: give the step back at its cursor and let others take their turn."""

    code = "slice_over"


class Holding:
    """A claimed step whose lease is kept alive by a thread for as long as the work makes progress."""

    def __init__(self, claim: Claim, *, deadline: float) -> None:
        self.claim = claim
        self._deadline = deadline
        self._progress_at = time.monotonic()
        self._word = "ok"
        self._closed = threading.Event()

    def hear(self, word: str) -> None:
        """What a script answered to this claim. Raises: LeaseLost, TaskStopped."""
        self._progress_at = time.monotonic()
        if word == "lost":
            raise LeaseLost
        if word == "stop":
            raise TaskStopped

    def check(self) -> None:
        """Note progress between two pieces of work, and hear whether to go on.

        Raises: LeaseLost, TaskStopped, SliceOver.
        """
        self.hear(self._word)
        # Render and upload would begin again from their first byte: they take no turns.
        over = self.claim.step in (Step.PLAN, Step.SHARD) and self._progress_at >= self._deadline
        if over or workers.stopping.is_set():
            raise SliceOver

    def renew(self, *, begun: bool = False) -> None:
        """Renew by hand. Raises as `hear`."""
        self.hear(store().renew(self.claim, begun=begun))

    def keep_alive(self) -> None:
        """Renew until closed; stop when the work has made no progress for longer than a page may take."""
        settings = conf()
        deadline_s = settings.page_deadline_ms / 1000 * _PATIENCE[self.claim.step]
        told_at = self._progress_at
        while not self._closed.wait(settings.renew_every_ms / 1000):
            if time.monotonic() - self._progress_at > deadline_s:
                _events.warning("lease.abandoned", step=self.claim.name)
                return
            try:
                progress_at = self._progress_at
                self._word = store().renew(self.claim, moved=progress_at > told_at)
                told_at = progress_at
            except StateUnavailable as error:
                _events.warning("lease.not_renewed", step=self.claim.name, error=error)

    def close(self) -> None:
        self._closed.set()


@contextmanager
def holding(claim: Claim, *, deadline: float) -> Iterator[Holding]:
    """Keep a claim's lease alive for the block, with its trace and ids bound to every log line."""
    held = Holding(claim, deadline=deadline)
    with (
        spans.span(claim.step, parent=claim.traceparent, task_id=claim.ref.id, step=claim.name, fence=claim.fence),
        logs.bound(taskId=claim.ref.id, shardId=claim.name if claim.step is Step.SHARD else None),
    ):
        if claim.starts_task:
            _events.info("task.started")
        thread = threading.Thread(target=held.keep_alive, name=f"renew {claim.name}", daemon=True)
        thread.start()
        try:
            yield held
        finally:
            held.close()


@dataclass(frozen=True, slots=True)
class GoOn:
    """What this process does next with the task, now that a step of it is done."""

    ref: TaskRef
    step: Step
    perform: "Perform"


Perform = Callable[[Holding], GoOn | None]
"""Does the work of one claimed step."""


def run_slice(step: Step, perform: Perform) -> None:
    """Claim and perform steps of a class, task by task, until none is left or the time slice is over."""
    deadline = time.monotonic() + workers.current().slice_s()
    workers.current().tell(busy=True)
    try:
        while claim := _wait_for_claim(step, deadline):
            attempt(claim, perform, deadline=min(deadline, time.monotonic() + _TURN_S.get(step, math.inf)))
            if time.monotonic() >= deadline or workers.stopping.is_set():
                hints.send(hints.work(step, queue=claim.queue, spool=storage.spool().id))
                return
    except StateUnavailable as error:
        _events.warning("state.unavailable", step=str(step), error=error)
    finally:
        workers.tell_idle()


def run_task(ref: TaskRef, step: Step, perform: Perform) -> None:
    """Claim and perform the steps of one class of one task: what this process has just made possible."""
    request = store().request(ref.id)
    deadline = time.monotonic() + workers.current().slice_s()
    while request and isinstance(claim := claim_step(ref, request, step), Claim):
        attempt(claim, perform, deadline=deadline)
        if time.monotonic() >= deadline or workers.stopping.is_set():
            hints.send(hints.work(step, queue=claim.queue, spool=storage.spool().id))
            return


def claim_step(ref: TaskRef, request: ExportRequest, step: Step) -> Claim | NoClaim:
    worker, spool = workers.current().name, storage.spool().id
    return store().claim(ref, step, worker=worker, digest=specify(request).digest(), spool=spool)


def _wait_for_claim(step: Step, deadline: float) -> Claim | None:
    while not workers.stopping.is_set():
        found = _claim_any(step)
        if not isinstance(found, NoClaim):
            return found
        if found.reason != "wait" or time.monotonic() + found.wait_ms / 1000 >= deadline:
            return None
        time.sleep(min(_NAP_S, found.wait_ms / 1000))
    return None


def _claim_any(step: Step) -> Claim | NoClaim:
    """A claim on the first proposed task that has one to give, else the shortest wait."""
    shortest = NoClaim("done")
    ranks = workers.current().ranks if step is Step.SHARD else EQUAL
    spool = storage.spool().id
    for proposal in store().next_tasks(step, _PROPOSALS, ranks=ranks, spool=spool):
        found = _claim_of(proposal.task_id, step)
        if isinstance(found, Claim):
            return found
        if found.reason == "wait" and (shortest.reason != "wait" or found.wait_ms < shortest.wait_ms):
            shortest = found
    return shortest


def _claim_of(task_id: str, step: Step) -> Claim | NoClaim:
    """A task that this process does not understand (a newer format, a kind that was taken out) is left to others."""
    try:
        request = store().request(task_id)
        if request is None:
            return NoClaim("gone")
        return claim_step(ref_of(task_id, request), request, step)
    except (SettingInvalid, ValueError) as error:
        _events.error("task.not_understood", taskId=task_id, error=error)
        return NoClaim("foreign")


def attempt(claim: Claim, perform: Perform, *, deadline: float) -> None:
    """Perform one claimed step, then what it makes possible. Raises: StateUnavailable, Interrupt."""
    with holding(claim, deadline=deadline) as held:
        go_on = _perform(held, perform)
    if go_on is not None:
        run_task(go_on.ref, go_on.step, go_on.perform)


def _perform(held: Holding, perform: Perform) -> GoOn | None:
    """An error becomes its transition."""
    claim = held.claim
    try:
        return perform(held)
    except LeaseLost:
        _events.warning("step.lease_lost", step=claim.name)
    except (TaskStopped, SliceOver) as stop:
        word = store().release(claim)
        _events.info("step.released", step=claim.name, reason=stop.code, answer=word)
        endings.settle(claim.ref.id, claim.request, word)
    except StateUnavailable as error:
        _events.warning("state.unavailable", step=claim.name, error=error)
        _release_when_back(claim)
    except Interrupt:
        store().release(claim)
        raise
    except Exception as error:  # noqa: BLE001  the edge of a stage: every error must be recorded in the state
        _record(claim, error)
    return None


def _release_when_back(claim: Claim) -> None:
    """Redis was away for a moment: give the step back as soon as it answers, so that nobody waits for the lease."""
    deadline = time.monotonic() + conf().lease_ms / 1000
    while time.monotonic() < deadline and not workers.stopping.is_set():
        try:
            endings.settle(claim.ref.id, claim.request, store().release(claim))
        except StateUnavailable:
            time.sleep(_NAP_S)
        else:
            return


def _record(claim: Claim, error: Exception) -> None:
    """What a failed step does to its task, as the table of failures in the design says."""
    code = error.code if isinstance(error, StepFailed) else StepFailed.code
    if isinstance(error, SegmentDamaged):
        word = _reopen(claim, error.shard_ids)
    elif isinstance(error, StepFailed) and error.retryable and not isinstance(error, SpoolFull):
        word = store().retry(claim, code, part=error.part if isinstance(error, StoreUnavailable) else 0)
    else:
        word = store().fail(claim, code, retryable=isinstance(error, StepFailed) and error.retryable)
    spans.failed(code)
    _events.warning("step.failed", step=claim.name, code=code, answer=word, error=error)
    endings.settle(claim.ref.id, claim.request, word, code=code)


def _reopen(claim: Claim, shard_ids: Sequence[str]) -> str:
    """Read shards again; what they have in the spool counts no longer."""
    old = [segment.name for segment in store().segments(claim.ref.id) if segment.shard_id in shard_ids]
    word = store().reopen(claim, shard_ids)
    if word == "ok":
        storage.spool().drop(claim.ref.id, old)
    return word
