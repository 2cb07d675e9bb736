"""What is left when everything has ended: nothing but the tasks, their files and the processes as they were."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from exports.contracts import State, Step
from exports.state import keys
from tests.soak.world import World

QUIET_LIMIT_S = 60.0
BATCH = 12
BATCHES = 6
"""Exports between two measurements of the processes, and most measurements."""
GROWTH_MB = 4.0
GROWTH_FILES = 3
"""Most that one process may grow over a batch; a connection more may be open at the one moment than at the other."""


def wait_until_quiet(world: World) -> None:
    """Until every task has ended and what it held is free."""
    deadline = time.monotonic() + QUIET_LIMIT_S
    while not_done(world):
        if time.monotonic() >= deadline:
            for what in not_done(world):
                world.ledger.break_promise(f"after {QUIET_LIMIT_S:.0f} s of peace: {what}")
            return
        world.tick()
        world.ledger.look()
        time.sleep(0.25)


def not_done(world: World) -> list[str]:
    ledger = world.ledger
    unfinished = [f"{task.task_id} is still {task.state}" for task in ledger.open]
    unanswered = [f"no answer to the submit of {body['requestId']}" for _, body in ledger.unanswered]
    return [*unfinished, *unanswered] or leftovers(world)


def leftovers(world: World) -> list[str]:
    """What no ended task may hold: leases, steps, hints, spool, files of others, half files, files of the dead."""
    return [*_in_redis(world), *_in_folders(world)]


def _in_redis(world: World) -> list[str]:
    found = []
    with world.redis() as state, world.broker() as broker:
        names = [key.decode() for key in state.scan_iter(match=f"{keys.PREFIX}:*", count=1000)]
        known = set(world.ledger.tasks)
        found += [name for name in names if ":exp_" in name and name.rsplit(":", 1)[1] not in known]
        held = ("running", "pending", "plan", "segments", "done", "parts")
        found += [name for name in names if name.split(":")[1] in held]
        found += [name for name in (keys.LEASES, *map(keys.runnable, Step)) if state.zcard(name)]
        found += [
            str(keys.index(state_)) for state_ in (State.QUEUED, State.RUNNING) if state.zcard(keys.index(state_))
        ]
        found += [
            f"{broker.llen(name)} hints in {name.decode()}"
            for name in broker.keys("*")
            if broker.type(name) == b"list" and broker.llen(name) > 2 * len(world.workers)
        ]
        immortal = [
            name for name in names if name.split(":")[1] in ("task", "request", "audit") and state.pttl(name) < 0
        ]
        found += [f"{name} never expires" for name in immortal]
    return found


def _in_folders(world: World) -> list[str]:
    spool, files = world.site.folder / "spool", world.site.folder / "files"
    found = [f"spool {path.name}" for path in (spool / "tasks").glob("*")]
    succeeded = {task.task_id for task in world.ledger.tasks.values() if task.state == "succeeded"}
    stored = list(files.glob("*/*"))
    found += [f"file {path.parent.name}/{path.name}" for path in stored if path.parent.name not in succeeded]
    found += [f"half file {path.name}" for path in stored if path.name.startswith(".")]
    # Each has its manifest beside it.
    if len(stored) != 2 * len(succeeded):
        found.append(f"{len(stored)} files of {len(succeeded)} succeeded tasks")
    alive = len(list((spool / "alive").glob("*")))
    if alive > len(world.members) + 1:
        found.append(f"{alive} files of living workers, {len(world.members)} processes")
    return found


@dataclass(frozen=True, slots=True)
class Size:
    """Of one process with its children. grown_…: over a batch of exports without a fault."""

    mb: float
    grown_mb: float
    grown_files: int


def measure(world: World, export: Callable[[], None]) -> dict[str, Size]:
    """Every process by name, over the first batch in which none grows, else over the last one.

    The first batches warm up whichever process gets the work; one that leaks grows in each.
    """
    before = _sizes(world)
    for _ in range(BATCHES):
        for _ in range(BATCH):
            export()
        after = _sizes(world)
        grown = {
            name: Size(mb, mb - before[name][0], files - before[name][1])
            for name, (mb, files) in after.items()
            if name in before
        }
        if not any(map(_too_much, grown.values())):
            break
        before = after
    return grown


def check_growth(world: World, sizes: dict[str, Size]) -> None:
    if len(sizes) < len(world.members):
        world.ledger.break_promise(f"{len(world.members) - len(sizes)} processes ended in peace")
    for name, size in sizes.items():
        if _too_much(size):
            world.ledger.break_promise(
                f"{name} grows: {size.grown_mb:+.1f} MB, {size.grown_files:+d} file descriptors in {BATCH} exports"
            )


def redis_bytes_a_task(world: World) -> int:
    """Median memory that the keys of one ended task take."""
    with world.redis() as state:
        sizes = [
            sum(state.memory_usage(name) or 0 for name in state.scan_iter(match=f"*:{task_id}", count=10_000))
            for task_id in list(world.ledger.tasks)[:20]
        ]
    return round(statistics.median(sizes)) if sizes else 0


def _too_much(size: Size) -> bool:
    return size.grown_mb > GROWTH_MB or size.grown_files > GROWTH_FILES


def _sizes(world: World) -> dict[str, tuple[float, int]]:
    world.tick()
    return {f"{member.group} {member.process.pid}": _size(member.process.pid) for member in world.members}


def _size(pid: int) -> tuple[float, int]:
    """MB and file descriptors of a process and its children."""
    process = psutil.Process(pid)
    family = [process, *process.children(recursive=True)]
    return sum(one.memory_info().rss for one in family) / 2**20, sum(one.num_fds() for one in family)
