"""The sweeps' own instruments: the checker tells each kind of damage, and a question that fails is no finding."""

from collections.abc import Callable
from pathlib import Path

import pytest

from exports.contracts import Format, State
from tests.reliability import checker
from tests.reliability.conftest import undisturbed
from tests.reliability.failpoints import Calls, Mode, redis_calls
from tests.reliability.world import World, is_settled


def only_file(world: World) -> Path:
    (found,) = (world.folder / "files").glob("exp_*/*.csv")
    return found


def cut_a_row(world: World) -> None:
    path = only_file(world)
    path.write_bytes(path.read_bytes()[:-1] + b"x")


def leave_a_lease(world: World) -> None:
    world.state.hset(f"export:running:{world.task_id}", "2026-09-01", "1|1|c|1|w")


def leave_a_segment(world: World) -> None:
    (world.folder / "spool" / "tasks" / world.task_id).mkdir()


DAMAGE: dict[str, Callable[[World], object]] = {
    "I1": lambda world: world.state.hset("export:task:exp_2", "state", "queued"),
    "I2": cut_a_row,
    "I5": leave_a_lease,
    "I6": lambda world: world.state.zadd("export:index:running", {world.task_id: 1}),
    "I7": leave_a_segment,
    "I13": lambda world: world.state.persist(f"export:events:{world.task_id}"),
    "I17": lambda world: world.state.hincrby("export:metrics", "rows", 1),
}


@pytest.mark.parametrize("invariant", DAMAGE)
def test_the_checker_tells(world: World, invariant: str) -> None:
    expected = undisturbed(world, Format.CSV)
    assert checker.check(world, expected=expected, ends=State.SUCCEEDED) == []
    DAMAGE[invariant](world)
    wrong = checker.check(world, expected=expected, ends=State.SUCCEEDED)
    assert [text for text in wrong if text.startswith(f"{invariant}:")], wrong


def test_the_checker_tells_a_line_of_the_log_that_is_missing(world: World) -> None:
    expected = undisturbed(world, Format.CSV)
    world.log.open("w").close()
    assert checker.check(world, expected=expected, ends=State.SUCCEEDED) == ["I17: 1 × succeeded, told 0 times"]


@pytest.mark.parametrize("mode", [Mode.ERROR, Mode.HANG, Mode.LOST])
def test_a_worker_that_cannot_ask_whether_all_is_settled_goes_on(world: World, mode: Mode) -> None:
    undisturbed(world, Format.CSV)
    assert is_settled(world)
    with redis_calls(asked := Calls()):
        assert is_settled(world)
    for at in range(1, asked.count + 1):
        with redis_calls(Calls(at=at, mode=mode, lasting=True)):
            assert not is_settled(world)
        assert is_settled(world)
