"""kill -9 before every line of the product's code; a fresh process goes on, and the checker finds nothing wrong."""

import signal

import pytest

from exports.contracts import Format
from tests import services
from tests.reliability import checker, sweeping
from tests.reliability.conftest import undisturbed
from tests.reliability.journeys import EXPIRY, JOURNEYS, Journey
from tests.reliability.sweeping import Found, Sample
from tests.reliability.world import World

pytestmark = pytest.mark.timeout(3600)
FOR_ALL = {b"identity", b"workers", b"metrics", b"spool", b"shares", b"latency", b"history", b"sweep-lock"}
"""Keys that belong to no task."""


def sweep_kills(world: World, journey: Journey, output: Format, sample: Sample, valkey: services.Valkey) -> None:
    expected = undisturbed(world, output)
    lines = sweeping.record_lines(world, journey)

    def look(world: World, at: int) -> Found:
        sweeping.prepare(world, journey)
        code = world.run(sweeping.striking(journey.act, at=at, number=signal.SIGKILL))
        before, wrong = checker.look(world, keeps_spool=journey.keeps_spool)
        wrong += world.here(journey.go_on)
        wrong += checker.check(
            world, expected=expected, ends=journey.ends, before=before, rows_again=not journey.keeps_spool
        )
        return Found(f"{at} {sweeping.text_of(lines[at - 1])}", wrong, struck=code == -signal.SIGKILL)

    points = sample.of(len(lines), sweeping.around_commits(lines), name=journey.name)
    sweeping.report(
        f"kill -9, {journey.name}, {output}, {sample}", sweeping.over(world, points, look, sample=sample, valkey=valkey)
    )


SLOW = {"rerun from scratch", "take over"}
"""What `make test` has no time for: each of its lines is one of another way too."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in SLOW else name for name in JOURNEYS]
)
def test_a_kill_before_any_line_changes_nothing_in_the_file(
    world: World, every: Sample, valkey: services.Valkey, name: str
) -> None:
    sweep_kills(world, JOURNEYS[name], Format.CSV, every, valkey)


@pytest.mark.soak
def test_a_kill_before_any_line_changes_nothing_in_a_workbook(
    world: World, every: Sample, valkey: services.Valkey
) -> None:
    sweep_kills(world, JOURNEYS["export"], Format.XLSX, every, valkey)


@pytest.mark.soak
@pytest.mark.parametrize("name", [name for name in JOURNEYS if name != "export"])
def test_a_kill_on_any_way_changes_nothing_in_a_workbook(
    world: World, every: Sample, valkey: services.Valkey, name: str
) -> None:
    sweep_kills(world, JOURNEYS[name], Format.XLSX, every, valkey)


def test_a_kill_while_an_expired_task_is_forgotten_leaves_nothing(
    world: World, every: Sample, valkey: services.Valkey
) -> None:
    lines = sweeping.record_lines(world, EXPIRY)

    def look(world: World, at: int) -> Found:
        sweeping.prepare(world, EXPIRY)
        code = world.run(sweeping.striking(EXPIRY.act, at=at, number=signal.SIGKILL))
        wrong = world.here(EXPIRY.go_on)
        left = [str(path) for name in ("spool/tasks", "files") for path in (world.folder / name).glob("*exp_*")]
        left += [key.decode() for key in world.state.keys("export:*") if key.split(b":")[1] not in FOR_ALL]
        return Found(
            f"{at} {sweeping.text_of(lines[at - 1])}",
            [*wrong, *(f"{name} is left" for name in left)],
            struck=code == -signal.SIGKILL,
        )

    points = every.of(len(lines), name="expire", least=5)
    sweeping.report(f"kill -9, expire, {every}", sweeping.over(world, points, look, sample=every, valkey=valkey))
