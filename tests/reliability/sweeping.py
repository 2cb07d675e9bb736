"""How a sweep goes over its points, and what it says when one of them breaks an invariant."""

import gc
import json
import math
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from types import FrameType
from typing import TypeVar

import pytest

from tests import services
from tests.reliability import failpoints, figures
from tests.reliability.failpoints import Line
from tests.reliability.journeys import Journey
from tests.reliability.world import Job, World

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """Which points are taken: every n-th from a random first one, and those that must not be missed. every 1: all.

    until: Unix time after which a long run ends with what it has.
    """

    seed: int
    every: int
    until: float = math.inf

    @property
    def over(self) -> bool:
        return time.time() > self.until

    def __str__(self) -> str:
        return f"--reliability-seed={self.seed} --reliability-every={self.every}"

    def of(self, count: int, always: Iterable[int] = (), *, name: str, least: int = 1, thinner: int = 1) -> list[int]:
        """Points from 1 to count, in order, about `least` of them at the least. name: of the sweep, for its first point.

        thinner: so many times fewer, unless all are asked for.
        """
        every = max(1, min((self.every - 1) * thinner + 1, count // least))
        first = random.Random(f"{self.seed} {name}").randrange(every) + 1
        chosen = {*range(first, count + 1, every), *always}
        return sorted(point for point in chosen if 1 <= point <= count)


def record_lines(world: World, journey: Journey) -> list[Line]:
    """The product's lines that `act` performs when nothing disturbs it."""
    prepare(world, journey)
    path = world.folder / "lines.json"

    def traced(world: World) -> None:
        found: list[Line] = []
        with failpoints.lines(lambda _, frame: found.append(failpoints.place(frame))):
            journey.act(world)
        path.write_text(json.dumps(found))

    assert world.run(traced) == 0, world.said.read_text()
    return [tuple(line) for line in json.loads(path.read_text())]


def prepare(world: World, journey: Journey) -> None:
    world.reset()
    for job in journey.prepare:
        assert not (wrong := world.here(job)), wrong


def around_commits(found: Sequence[Line]) -> Iterator[int]:
    """The last line before each commit goes out, and the first one after its answer."""
    for number, (line, following) in enumerate(pairwise(found), 1):
        if failpoints.sends(line) and failpoints.commits(following):
            yield from (number, number + 1)


def striking(act: Job, *, at: int, number: signal.Signals) -> Job:
    """`act` whose process gets a signal before its n-th line; in `world.folder/struck` stands where."""

    def job(world: World) -> None:
        def each(count: int, frame: FrameType) -> None:
            if count == at:
                os.kill(os.getpid(), number)

        with failpoints.lines(each):
            act(world)

    return job


def text_of(line: Line) -> str:
    return f"{line[0]}:{line[1]} {line[2]}"


@dataclass(frozen=True, slots=True)
class Found:
    """What a point has shown. struck: the fault happened, and not only after the end."""

    where: str
    wrong: list[str]
    struck: bool


P = TypeVar("P")


def over(
    world: World, points: Sequence[P], look: Callable[[World, P], Found], *, sample: Sample, valkey: services.Valkey
) -> list[Found]:
    """Every point, shared out to a process for each core, each with a world of its own; in any order."""
    points = random.Random(sample.seed).sample(points, len(points))  # so that a sweep that is cut was everywhere
    count = min(os.cpu_count() or 1, 8)
    path = world.folder / "found.jsonl"
    path.unlink(missing_ok=True)

    def drive(number: int) -> Job:
        def job(_: World) -> None:
            gc.freeze()  # what is there already is never looked through, so that the processes go on to share its pages
            with world.beside(number, valkey=valkey) as own, own.logged(), path.open("a", buffering=1) as file:
                for point in points[number - 1 :: count]:
                    file.write(json.dumps(asdict(look(own, point))) + "\n")
                    if sample.over:
                        break

        return job

    drivers = [world.start(drive(number)) for number in range(1, count + 1)]
    codes = [driver.wait(limit_s=math.inf) for driver in drivers]
    assert not any(codes), world.said.read_text()
    return [Found(**json.loads(line)) for line in path.read_text().splitlines()]


def report(name: str, found: Sequence[Found]) -> None:
    """Print the counts; fail with what was wrong."""
    wrong = [f"{point.where}: {text}" for point in found for text in point.wrong]
    figures.tell(f"{name}: {len(found)} points, {sum(point.struck for point in found)} faults, {len(wrong)} violations")
    assert found
    if wrong:
        pytest.fail("\n".join([f"{len(wrong)} violations", *wrong[:SHOWN]]), pytrace=False)
