"""SIGSTOP before every line, for longer than the lease lives; another worker finishes the task, then the zombie wakes."""

import signal

import pytest

from exports.contracts import Format
from tests import services
from tests.reliability import checker, sweeping
from tests.reliability.conftest import undisturbed
from tests.reliability.journeys import JOURNEYS, Journey
from tests.reliability.sweeping import Found, Sample
from tests.reliability.world import World, sweep_once

pytestmark = pytest.mark.timeout(3600)
_OF_TIME = (b"export:workers", b"export:lost", b"export:sweep-lock", b"export:cleanup", b"export:spool")
"""Keys that any worker moves on as time passes."""
_METRICS = b"export:metrics"
_HITS = b"request_hits"
"""A submit that wakes up when another has made its task counts as one that found it."""


def run_out_leases(world: World) -> None:
    """As if the life of every lease had passed: only Redis counts it."""
    for key in world.state.keys("export:running:*"):
        for step, text in world.state.hgetall(key).items():
            world.state.hset(key, step, b"1|" + text.split(b"|", 1)[1])
    for member in world.state.zrange("export:leases", 0, -1):
        world.state.zadd("export:leases", {member: 1})


def run_out_cleanups(world: World) -> None:
    """As if an hour had passed since the end: what ended tasks still hold is looked at again."""
    world.state.zadd("export:cleanup", dict.fromkeys(world.state.zrange("export:cleanup", 0, -1), 1), xx=True)


def kept(world: World) -> dict[bytes, object]:
    """All that Redis knows of tasks, but for what time changes; each counter by its name."""
    found: dict[bytes, object] = {
        key: world.state.dump(key) for key in world.state.keys("export:*") if key not in (*_OF_TIME, _METRICS)
    }
    counters: dict[bytes, bytes] = world.state.hgetall(_METRICS)
    return found | {_METRICS + b" " + name: count for name, count in counters.items() if name != _HITS}


def sweep_zombies(world: World, journey: Journey, output: Format, sample: Sample, valkey: services.Valkey) -> None:
    expected = undisturbed(world, output)
    lines = sweeping.record_lines(world, journey)

    def look(world: World, at: int) -> Found:
        sweeping.prepare(world, journey)
        zombie = world.start(sweeping.striking(journey.act, at=at, number=signal.SIGSTOP))
        struck = zombie.wait() == -signal.SIGSTOP
        run_out_leases(world)
        wrong = world.here(journey.go_on)
        before = kept(world)
        if struck:
            zombie.go_on()
            if (code := zombie.wait()) != 0:
                wrong.append(f"the zombie ended with {code}: {world.said.read_text()}")
            changed = [key.decode() for key, value in kept(world).items() if before.get(key) != value]
            if changed:
                wrong.append(f"I5: the zombie changed {changed}")
        run_out_cleanups(world)
        wrong += world.here(sweep_once)
        wrong += checker.check(world, expected=expected, ends=journey.ends, rows_again=not journey.keeps_spool)
        return Found(f"{at} {sweeping.text_of(lines[at - 1])}", wrong, struck=struck)

    points = sample.of(len(lines), sweeping.around_commits(lines), name=f"zombie {journey.name}", thinner=2)
    sweeping.report(
        f"SIGSTOP, {journey.name}, {output}, {sample}", sweeping.over(world, points, look, sample=sample, valkey=valkey)
    )


@pytest.mark.parametrize("output", [Format.CSV, pytest.param(Format.XLSX, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", ["export", "cancel in a page", "rerun"])
def test_a_worker_that_wakes_up_too_late_changes_nothing(
    world: World, every: Sample, valkey: services.Valkey, name: str, output: Format
) -> None:
    sweep_zombies(world, JOURNEYS[name], output, every, valkey)
