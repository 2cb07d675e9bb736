"""The n-th call of Redis, the database, the file system or the store fails, hangs, or is done and its reply is lost."""

import pytest

from exports.contracts import Format, State
from tests import services
from tests.conftest import exports_settings
from tests.reliability import checker, failpoints, sweeping
from tests.reliability.conftest import undisturbed
from tests.reliability.failpoints import Calls, Mode
from tests.reliability.journeys import rerun_and_work_off
from tests.reliability.sweeping import Found, Sample
from tests.reliability.world import World, guarded, submit, work

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


def sweep_calls(world: World, seam: str, output: Format, sample: Sample, valkey: services.Valkey) -> None:
    expected = undisturbed(world, output)
    count = count_calls(world, seam)
    points = [
        (at, mode, lasting)
        for mode in MODES[seam]
        for lasting in (False, True)
        for at in sample.of(count, name=f"{seam} {mode} {lasting}", least=5)
    ]

    def look(world: World, point: tuple[int, Mode, bool]) -> Found:
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

    sweeping.report(f"failed calls, {seam}, {output}, {sample}", sweeping.over(world, points, look, valkey=valkey))


@pytest.mark.parametrize("seam", failpoints.SEAMS)
def test_a_call_that_fails_costs_no_row(world: World, every: Sample, valkey: services.Valkey, seam: str) -> None:
    # A worker waits for Redis as long as its lease may live.
    with exports_settings(lease_ms=500, renew_every_ms=100):
        sweep_calls(world, seam, Format.CSV, every, valkey)
