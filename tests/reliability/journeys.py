"""The ways of a task that the sweeps disturb. Each is what one process does, and how others go on after it."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from exports import service
from exports.contracts import Shard, State, Step
from exports.errors import PageTooLarge, SourceUnavailable, StateConflict, StepBroken
from exports.pipeline import plan, render, shard, steps, sweep
from exports.pipeline.steps import Holding
from exports.state.store import store
from tests import pipeline
from tests.conftest import exports_settings
from tests.kinds import FlakyOrders
from tests.reliability.world import (
    Job,
    World,
    guarded,
    must_view,
    rerun_if_failed,
    submit,
    submit_and_work,
    submit_and_work_off,
    work,
    work_off,
)


@dataclass(frozen=True, slots=True)
class Journey:
    """prepare: before the fault. act: the process that is disturbed. go_on: undisturbed, in a fresh process, after it.

    keeps_spool: whether the committed bytes are there at every moment of `act`.
    """

    name: str
    act: Job
    prepare: tuple[Job, ...] = ()
    go_on: Job = submit_and_work_off
    ends: State = State.SUCCEEDED
    keeps_spool: bool = True


def one_page(world: World) -> None:
    """A planned task with one committed page, given back."""
    submit(world)
    plan.plan.fn()
    with exports_settings(slice_ms=0):
        shard.shard.fn()


def before_page(number: int, fault: Callable[[], object]) -> None:
    """Once, before this process reads its n-th page."""
    seen = [0]

    def count(_: Shard, __: str, ___: int) -> None:
        seen[0] += 1
        if seen[0] == number:
            fault()

    FlakyOrders.before_read.append(count)


def die(world: World) -> None:
    """A worker that dies while it reads its third page."""

    def job(world: World) -> None:
        before_page(3, lambda: os.kill(os.getpid(), signal.SIGKILL))
        submit_and_work(world)

    assert world.run(job) == -signal.SIGKILL


def fail(world: World) -> None:
    """A task that fails at its fourth page."""
    submit(world)
    before_page(4, lambda: _raise(StepBroken("a fault of the test")))
    work_off(world)
    FlakyOrders.before_read.clear()


def fetch(world: World) -> None:
    """A task that waits for render."""
    submit(world)
    steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
    steps.run_slice(Step.SHARD, _fetch_only)


def _fetch_only(held: Holding) -> None:
    shard.fetch_shard(held)


def damage(world: World) -> None:
    """One byte of the first segment is another one."""
    segment = render.ordered(store().segments(world.task_id))[0]
    path = world.folder / "spool" / "tasks" / world.task_id / segment.name
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)


def cancel(world: World) -> None:
    try:
        service.cancel(world.task_id, principal=pipeline.ANN)
    except StateConflict:
        assert must_view(world).state is State.SUCCEEDED


def cancel_and_work(world: World) -> None:
    guarded(lambda: cancel(world))
    work(world)


def cancel_in_page(world: World) -> None:
    before_page(2, lambda: cancel(world))
    work(world)


def cancel_and_work_off(world: World) -> None:
    submit(world)
    cancel(world)
    work_off(world)


def rerun_and_work(world: World) -> None:
    guarded(lambda: rerun_if_failed(world))
    work(world)


def rerun_from_scratch(world: World) -> None:
    guarded(lambda: rerun_if_failed(world, from_scratch=True))
    work(world)


def rerun_and_work_off(world: World) -> None:
    """What a person does with a task that a fault has failed."""
    submit(world)
    work_off(world)
    rerun_if_failed(world)
    work_off(world)


def with_faults(world: World) -> None:
    """A page that does not fit and one that is not answered, in the middle of an export."""
    before_page(2, lambda: _raise(PageTooLarge("of the test")))
    before_page(6, lambda: _raise(SourceUnavailable("database_timeout")))
    submit_and_work(world)


def expire(world: World) -> None:
    """An ended task whose keys have run out; only the memory of what to clean up is left."""
    submit(world)
    work_off(world)
    for key in world.state.scan_iter("export:*"):
        if world.state.pttl(key) > 0:
            world.state.delete(key)
    world.state.zadd("export:cleanup", dict.fromkeys(world.state.zrange("export:cleanup", 0, -1), 0))


def sweep_twice(world: World) -> None:
    for _ in range(2):
        guarded(lambda: sweep.sweep(boot=True))


def _raise(error: Exception) -> Any:
    raise error


JOURNEYS = {
    journey.name: journey
    for journey in (
        Journey("export", act=submit_and_work),
        Journey("page faults", act=with_faults),
        Journey("take over", prepare=(die,), act=work),
        Journey("cancel", prepare=(one_page,), act=cancel_and_work, go_on=cancel_and_work_off, ends=State.CANCELLED),
        Journey(
            "cancel in a page", prepare=(one_page,), act=cancel_in_page, go_on=cancel_and_work_off, ends=State.CANCELLED
        ),
        Journey(
            "cancel a failed task",
            prepare=(fail,),
            act=cancel_and_work,
            go_on=cancel_and_work_off,
            ends=State.CANCELLED,
        ),
        Journey("rerun", prepare=(fail,), act=rerun_and_work, go_on=rerun_and_work_off),
        Journey(
            "rerun from scratch", prepare=(fail,), act=rerun_from_scratch, go_on=rerun_and_work_off, keeps_spool=False
        ),
        Journey("reopen", prepare=(fetch, damage), act=work, keeps_spool=False),
    )
}
EXPIRY = Journey("expire", prepare=(expire,), act=sweep_twice, go_on=sweep_twice)
