"""`python -m tests.soak --minutes N [--seed N] [--mode kills] [--databases postgres,mariadb,sqlite]`

Without a mode a third of the time each: the sweeps over as many points as fit, the other tests of the marker `soak`,
and loads and faults over each database in turn. A mode is one of `tests.soak.modes`, and ends when its count is
reached. Nothing goes on for longer than the minutes and `GRACE_S`, which is for a look at what is left.
Exit code 1 when a promise was broken; the folder of that run is then kept.
"""

import argparse
import datetime as dt
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conftest import memory
from tests.reliability.figures import MARK
from tests.soak import flatness
from tests.soak.modes import MODES, SWEEPS, Loads, Suite
from tests.soak.schedule import FAULT_EVERY_S, FAULTS, Event, schedule
from tests.soak.world import FIRST, World, opened

ROOT = Path(__file__).resolve().parents[2]
GRACE_S = 120
"""After the minutes: tests, faults and looks that are under way then are cut."""
LOOK_EVERY_S = 0.25
EXPORT_LIMIT_S = 30.0
_NO_TESTS = 5
_POINTS = 200_000
"""Of all sweeps, roughly."""
_POINTS_A_SECOND = 8
"""On two cores."""


class OutOfTime(BaseException):
    """The minutes and the grace are over."""


def main(arguments: Sequence[str] | None = None) -> int:
    given = _arguments(arguments)
    # A run that is ended leaves no process behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGALRM, _run_out)
    seconds = given.minutes * 60
    signal.setitimer(signal.ITIMER_REAL, seconds + GRACE_S)
    mode = f" MODE={given.mode}" if given.mode else ""
    print(f"seed {given.seed}: repeat with make soak MINUTES={given.minutes:g}{mode} SEED={given.seed}", flush=True)
    try:
        sound = run_mode(MODES[given.mode], given, seconds) if given.mode else run_all(given, seconds)
    except OutOfTime:
        print(f"CUT after {seconds + GRACE_S:.0f} s: what was left at the end is not known", flush=True)
        return 1
    print("nothing is broken" if sound else "BROKEN, see above", flush=True)
    return 0 if sound else 1


def _run_out(*_: object) -> None:
    raise OutOfTime


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--mode", choices=[*MODES], help="one figure alone")
    parser.add_argument("--databases", type=lambda text: text.split(","), default=databases())
    parser.add_argument("--skip-tests", action="store_true", help="go to loads and faults at once")
    return parser.parse_args(arguments)


def databases() -> list[str]:
    """Those that this machine has."""
    return ["postgres", *(["mariadb"] if shutil.which("mariadbd") else []), "sqlite"]


def run_mode(mode: Suite | Loads, given: argparse.Namespace, seconds: float) -> bool:
    if isinstance(mode, Suite):
        return run_tests(given.mode, ["-m", "", *mode.arguments, *paths(mode.files)], limit_s=seconds, seed=given.seed)
    most_s = min(seconds, mode.count * mode.every_s) / len(given.databases)
    runs = [
        soak(vendor, seed=given.seed + number, seconds=most_s, faults=mode.faults, every_s=mode.every_s)
        for number, vendor in enumerate(given.databases)
    ]
    return all(runs)


def run_all(given: argparse.Namespace, seconds: float) -> bool:
    began = time.monotonic()
    sound = given.skip_tests or (
        run_sweeps(seconds / 3, seed=given.seed) & run_marked_tests(seconds / 3, seed=given.seed)
    )
    left_s = seconds - (time.monotonic() - began)
    for number, vendor in enumerate(given.databases):
        sound &= soak(vendor, seed=given.seed + number, seconds=left_s / len(given.databases))
    return sound


def paths(names: Sequence[str]) -> list[str]:
    return [f"tests/reliability/test_{name}.py" for name in names]


def run_sweeps(limit_s: float, *, seed: int) -> bool:
    """Every kill, stop and failed call of the fault suite, or every n-th where there is no time for all."""
    every = max(1, math.ceil(_POINTS / (_POINTS_A_SECOND * limit_s)))
    return run_tests(
        f"sweeps, every {every}",
        ["-m", "", f"--reliability-every={every}", *paths(SWEEPS)],
        limit_s=limit_s,
        seed=seed,
    )


def run_marked_tests(limit_s: float, *, seed: int) -> bool:
    """The other long runs of the fault suite."""
    apart = [f"--ignore={path}" for path in paths(SWEEPS)]
    return run_tests("tests of the marker soak", ["-m", "soak", *apart, "tests"], limit_s=limit_s, seed=seed)


def run_tests(name: str, arguments: Sequence[str], *, limit_s: float, seed: int) -> bool:
    """Those that the time does not suffice for are left out, and one that is under way then is cut."""
    began = time.monotonic()
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-s", f"--session-timeout={limit_s:.0f}"),
        *(f"--reliability-seed={seed}", f"--randomly-seed={seed}", f"--reliability-until={time.time() + limit_s:.0f}"),
        *arguments,
    ]
    with (
        tempfile.TemporaryFile("w+") as output,
        # What is killed does not clean up. Servers that refuse root must get through.
        tempfile.TemporaryDirectory(prefix="exports-soak-", dir=memory(), ignore_cleanup_errors=True) as folder,
    ):
        Path(folder).chmod(0o755)
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": folder},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            code = process.wait(limit_s + GRACE_S / 4)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            if process.poll() is None:  # its servers go with it
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        said = output.read()
    closing = next((line for line in reversed(said.splitlines()) if line.strip(" =!")), "")
    print(f"{name} ({time.monotonic() - began:.0f} s): {'cut' if code is None else closing}", flush=True)
    for line in said.splitlines():
        if line.startswith(MARK):
            print(f"  {line.removeprefix(MARK)}", flush=True)
    if points := sum(map(int, re.findall(r": (\d+) points, ", said))):
        print(f"  {points:,} points in all", flush=True)
    out_of_time = code is None or "session-timeout" in said
    if code in (0, _NO_TESTS) or (out_of_time and "\nFAILED " not in said):
        return True
    print(said[-8000:])
    return False


def soak(
    vendor: str, *, seed: int, seconds: float, faults: Mapping[str, int] = FAULTS, every_s: float = FAULT_EVERY_S
) -> bool:
    """One run over one database; whether every promise was kept."""
    folder = Path(tempfile.mkdtemp(prefix=f"exports-soak-{vendor}-"))
    print(f"{vendor}, {seconds:.0f} s of loads and faults", flush=True)
    with opened(folder, vendor=vendor) as world:
        happened = disturb(world, schedule(seed, seconds=seconds, faults=faults, fault_every_s=every_s))
        world.calm()
        flatness.wait_until_quiet(world)
        sizes = flatness.measure(world, lambda: export_in_peace(world))
        flatness.check_growth(world, sizes)
        flatness.wait_until_quiet(world)
        report(world, happened, sizes)
        kept = not world.ledger.violations
    if kept:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"  logs, spool and files are kept in {folder}")
    return kept


def disturb(world: World, events: list[Event]) -> Counter[str]:
    """Loads and faults at their times; how often each happened."""
    happened: Counter[str] = Counter()
    began = looked = time.monotonic()
    while events:
        now = time.monotonic()
        world.tick()
        while events and events[0].at_s <= now - began:
            event = events.pop(0)
            happened[event.name] += world.happen(event)
        if now - looked >= LOOK_EVERY_S:
            looked = now
            world.ledger.look()
        time.sleep(0.02)
    return happened


def export_in_peace(world: World) -> None:
    """One export of two days, to its end."""
    known = len(world.ledger.tasks)
    body = {"from": f"{FIRST}", "to": f"{FIRST + dt.timedelta(days=1)}", "format": ("csv", "xlsx")[known % 2]}
    world.ledger.submit("ann", {"requestId": f"peace-{known}", **body})
    deadline = time.monotonic() + EXPORT_LIMIT_S
    while world.ledger.open:
        if time.monotonic() >= deadline:
            world.ledger.break_promise(f"an export in peace takes more than {EXPORT_LIMIT_S:.0f} s")
            return
        world.tick()
        world.ledger.look()
        time.sleep(0.05)


def report(world: World, happened: Counter[str], sizes: dict[str, flatness.Size]) -> None:
    """What was done, what came of it, and what was left, in numbers."""
    counts, tasks = world.ledger.counts, world.ledger.tasks
    print(f"  done to it     {_list(happened)}; {world.starts} processes were started")
    print(f"  came of it     {len(tasks)} tasks of {counts.pop('submits', 0)} submits; {_list(counts)}")
    worst = max(sizes.values(), key=lambda size: size.grown_mb)
    print(
        f"  memory         {max(size.mb for size in sizes.values()):.0f} MB the largest process, {worst.grown_mb:+.1f} MB the most growth over {flatness.BATCH} exports"
    )
    print(f"  descriptors    {max(size.grown_files for size in sizes.values()):+d} the most growth")
    print(
        f"  left behind    {len(flatness.leftovers(world))} in Redis, spool and store; {flatness.redis_bytes_a_task(world):,} bytes of Redis an ended task"
    )
    print(f"  broken         {len(world.ledger.violations)}", flush=True)


def _list(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.most_common())


if __name__ == "__main__":
    sys.exit(main())
