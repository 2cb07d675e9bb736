"""Many processes ask for the same export at the same moment."""

import multiprocessing
from collections import defaultdict

import pytest

from exports.contracts import State
from exports.state.store import store
from tests import pipeline
from tests.conftest import exports_settings
from tests.reliability import figures
from tests.reliability.world import WINDOW, World

RACERS = 10


@pytest.mark.parametrize("rounds", [200, pytest.param(2000, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
def test_ten_racing_submits_of_one_request_make_one_task(world: World, rounds: int) -> None:
    world.reset()
    start = multiprocessing.get_context("fork").Barrier(RACERS)
    path = world.folder / "answers"

    def race(_: World) -> None:
        with path.open("a", buffering=1) as answers:
            for number in range(rounds):
                start.wait(timeout=60)
                answers.write(f"{number} {pipeline.submit(*WINDOW, request_id=f'race {number}')}\n")

    with exports_settings(queued_per_owner=rounds):
        racers = [world.start(race) for _ in range(RACERS)]
    assert [racer.wait(limit_s=600) for racer in racers] == [0] * RACERS, world.said.read_text()
    found: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines():
        number, task_id = line.split()
        found[number].append(task_id)
    assert [len(answers) for answers in found.values()] == [RACERS] * rounds
    assert [answers for answers in found.values() if len(set(answers)) != 1] == []
    figures.tell(f"{rounds} rounds of {RACERS} racing submits, a task each")
    assert sorted(store().owned("ann")) == sorted({answers[0] for answers in found.values()})
    assert store().counters().states[State.QUEUED] == rounds
