"""The n-th call of Redis, the database, the file system or the store fails, hangs, or is done and its reply is lost."""

import random
from collections.abc import Callable

import pytest

from exports.contracts import Format, State
from tests import services
from tests.conftest import exports_settings
from tests.reliability import checker, failpoints, sweeping
from tests.reliability.conftest import ROWS, undisturbed
from tests.reliability.failpoints import Calls, Mode
from tests.reliability.journeys import rerun_and_work_off
from tests.reliability.sweeping import Found, Sample
from tests.reliability.world import WINDOW, World, guarded, submit, work

pytestmark = pytest.mark.timeout(3600)

MODES = dict.fromkeys(failpoints.SEAMS, (Mode.ERROR, Mode.HANG, Mode.LOST)) | {"files": tuple(Mode)}
CODES = {
    "redis": frozenset[str](),
    "database": frozenset({"database_timeout", "database_connection"}),
    "files": frozenset({"disk_full", "store_unavailable", "spool_lost", "unclassified"}),
    "store": frozenset({"store_unavailable"}),
}
"""Why a task may have failed: never because of Redis."""
SURVIVED_ONCE = {"redis", "database", "store"}
"""One fault of these is tried again by itself."""
Point = tuple[int, Mode, bool]
"""Which call fails, how, and whether all later ones do."""
Choice = Callable[[str, int, Sample], list[Point]]
A_LEASE = {"lease_ms": 500, "renew_every_ms": 100}
"""A worker waits for Redis as long as its lease may live."""


def export(world: World) -> None:
    guarded(lambda: submit(world))
    work(world)


def failing(seam: str, calls: Calls, world: World) -> None:
    """An export during which calls fail; how many calls there were stands in `world.folder/calls`."""
    try:
        with failpoints.SEAMS[seam](calls):
            export(world)
    finally:
        (world.folder / "calls").write_text(str(calls.count))


def count_calls(world: World, seam: str) -> int:
    world.reset()
    assert world.run(lambda world: failing(seam, Calls(), world)) == 0, world.said.read_text()
    return int((world.folder / "calls").read_text())


def sampled(seam: str, count: int, sample: Sample) -> list[Point]:
    return [
        (at, mode, lasting)
        for mode in MODES[seam]
        for lasting in (False, True)
        for at in sample.of(count, name=f"{seam} {mode} {lasting}", least=3, thinner=8)
    ]


def each_once(seam: str, count: int, sample: Sample) -> list[Point]:
    """Every call, in a mode that the seed chooses."""
    modes = random.Random(f"{sample.seed} {seam}")
    return [(at, modes.choice(MODES[seam]), False) for at in range(1, count + 1)]


def sweep_calls(world: World, seam: str, sample: Sample, valkey: services.Valkey, *, choose: Choice = sampled) -> None:
    output = world.output
    expected = undisturbed(world, output)
    count = count_calls(world, seam)
    points = choose(seam, count, sample)

    def look(world: World, point: Point) -> Found:
        at, mode, lasting = point
        world.reset()
        code = world.run(lambda world: failing(seam, Calls(at=at, mode=mode, lasting=lasting), world))
        struck = int((world.folder / "calls").read_text()) >= at
        _, wrong = checker.look(world, keeps_spool=False)
        if code:
            wrong.append(f"the worker ended: {world.said.read_text()}")
        if (view := world.view()) and view.state is State.FAILED:
            wrong += checker.explain(view, codes=CODES[seam])
            if not lasting and seam in SURVIVED_ONCE:
                wrong.append(f"one fault failed the task: {view.failure}")
        wrong += world.here(rerun_and_work_off)
        wrong += checker.check(
            world,
            expected=expected,
            ends=State.SUCCEEDED,
            rows_again=seam == "files",
            may_break=frozenset({"OSError"}) if seam == "files" else frozenset(),
        )
        return Found(f"{seam} call {at} of {count}, {mode}{', lasting' if lasting else ''}", wrong, struck=struck)

    sweeping.report(
        f"failed calls, {seam}, {output}, {sample}", sweeping.over(world, points, look, sample=sample, valkey=valkey)
    )


@pytest.mark.parametrize("seam", failpoints.SEAMS)
def test_a_call_that_fails_costs_no_row(world: World, every: Sample, valkey: services.Valkey, seam: str) -> None:
    with exports_settings(**A_LEASE):
        sweep_calls(world, seam, every, valkey)


@pytest.mark.parametrize("seam", failpoints.SEAMS)
def test_each_call_of_the_smallest_task_may_fail(
    world: World, every: Sample, valkey: services.Valkey, seam: str
) -> None:
    world.window = (WINDOW[0], WINDOW[0])
    with exports_settings(page_rows=ROWS, **A_LEASE):
        sweep_calls(world, seam, every, valkey, choose=each_once)


@pytest.mark.soak
@pytest.mark.parametrize("seam", failpoints.SEAMS)
@pytest.mark.parametrize("output", Format)
@pytest.mark.parametrize(
    "world", ["sqlite", "postgres", pytest.param("mariadb", marks=pytest.mark.mariadb)], indirect=True
)
def test_a_call_that_fails_costs_no_row_on_any_database(
    world: World, every: Sample, valkey: services.Valkey, output: Format, seam: str
) -> None:
    world.output = output
    with exports_settings(**A_LEASE):
        sweep_calls(world, seam, every, valkey)
