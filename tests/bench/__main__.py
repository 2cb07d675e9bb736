"""`make bench`: the service end to end and its peers, in turn, on the same orders; medians and ratios.

Every round measures each case once, so that a slow moment of the machine meets all of them; a ratio is the median over
the rounds of the case's seconds divided by those of the case it is compared with. Peers are whole processes; the time
of the service is that from POST to `succeeded`, as a client sees it. Each case runs once unmeasured just before: what a
virtual machine has not used for half a minute it may have to fetch from its disk.
"""

import argparse
import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Case = Callable[[], float]
_MEMORY_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Goal:
    """seconds of `case` ≤ must × seconds of `of`, a case or several with ` + ` between them."""

    what: str
    case: str
    of: str
    must: float
    goal: float


GOALS = (
    Goal("CSV against psql \\copy", "service csv", "psql copy", 2.4, 1.9),
    Goal("XLSX against rustpy-xlsxwriter over Arrow", "service xlsx", "rustpy arrow xlsx", 0.40, 0.32),
    Goal("CSV against django-import-export", "service csv small", "import-export csv", 1 / 40, 1 / 50),
    Goal("XLSX against django-import-export", "service xlsx small", "import-export xlsx", 1 / 40, 1 / 50),
    Goal("CSV against its bare hot path", "service csv", "bare csv", 1.25, 1.15),
    Goal("XLSX against its bare hot path", "service xlsx", "bare xlsx", 1.25, 1.15),
    Goal("SQLite CSV against values_list", "service sqlite csv", "values_list sqlite", 0.55, 0.50),
    Goal("MariaDB CSV against values_list", "service mariadb csv", "values_list mariadb", 0.55, 0.50),
    Goal("CSV, 4 times the rows", "service csv big", "service csv", 4.2, 4.0),
    Goal("CSV to S3 against folder and bare upload", "service s3 csv", "service csv + bare s3 upload", 1.10, 1.05),
)


def main() -> None:
    args = _arguments()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    from tests.bench.world import World

    with tempfile.TemporaryDirectory(prefix="exports-bench-", ignore_cleanup_errors=True) as folder:
        world = World(Path(folder), rows=args.rows, small_rows=args.small_rows, kind=args.kind, big=args.big)
        with world.running():
            runs = _measure(world.cases(only=args.only), rounds=args.rounds)
            latency = world.small_latency_s(count=15)
            memory = world.memory()
            pages = world.ops_pages_s(tasks=10_000, count=15)
    _print(runs, latency_s=latency, memory=memory, pages=pages)
    if args.json:
        Path(args.json).write_text(
            json.dumps({"runs": runs, "latency_s": latency, "memory": memory, "pages": pages}, indent=1)
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--small-rows", type=int, default=40_000, help="for peers that take minutes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", default="exports.kinds.orders.OrdersKind", help="class of the kind that is exported")
    parser.add_argument("--only", default="", help="cases whose names hold one of these texts, parted by commas")
    parser.add_argument("--big", action="store_true", help="also four times the rows")
    parser.add_argument("--json", help="write all figures to this file")
    return parser.parse_args()


def _measure(cases: dict[str, Case], *, rounds: int) -> dict[str, list[float]]:
    runs: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds):
        for name, case in cases.items():
            _touch_memory()
            case()
            runs[name].append(case())
            print(f"round {number + 1}  {name:24} {runs[name][-1]:8.2f} s", file=sys.stderr)
            time.sleep(0.3)
    return runs


def _touch_memory() -> None:
    """Have the machine hold memory that it can give at once: a virtual one gets each new page from its host, which costs
    a case whose file is new more than writing it, and the next one nothing.
    """
    with mmap.mmap(-1, _MEMORY_BYTES) as memory:
        for at in range(0, _MEMORY_BYTES, mmap.PAGESIZE):
            memory[at] = 1


def _print(
    runs: dict[str, list[float]], *, latency_s: list[float], memory: dict[str, int], pages: dict[str, list[float]]
) -> None:
    print(f"\n{'case':26}{'median s':>9}{'min':>8}{'max':>8}")
    for name, seconds in runs.items():
        print(f"{name:26}{statistics.median(seconds):9.2f}{min(seconds):8.2f}{max(seconds):8.2f}")
    print(f"\n{'ratio':46}{'median':>8}{'min':>8}{'max':>8}{'must':>8}{'goal':>8}")
    for goal in GOALS:
        of = goal.of.split(" + ")
        if {goal.case, *of} <= runs.keys():
            theirs = [sum(seconds) for seconds in zip(*(runs[name] for name in of), strict=True)]
            ratios = [mine / base for mine, base in zip(runs[goal.case], theirs, strict=True)]
            print(
                f"{goal.what:46}{statistics.median(ratios):8.3f}{min(ratios):8.3f}{max(ratios):8.3f}"
                f"{goal.must:8.3f}{goal.goal:8.3f}"
            )
    print(f"\n2,000 rows, POST to succeeded, median of {len(latency_s)}: {statistics.median(latency_s) * 1000:.0f} ms")
    for name, seconds in pages.items():
        must = "" if name == "search" else " (must: 200 ms)"
        middle, most = statistics.median(seconds) * 1000, max(seconds) * 1000
        print(f"ops page with 10,000 tasks, {name}: median {middle:.0f} ms, most {most:.0f} ms{must}")
    print("memory, MiB: " + ", ".join(f"{name} {kib / 1024:.0f}" for name, kib in memory.items()))
    print(f"machine: {os.cpu_count()} cores, Python {sys.version.split()[0]}, {_processor()}")


def _processor() -> str:
    done = subprocess.run(["lscpu"], capture_output=True, text=True, check=False)
    names = [line.partition(":")[2].strip() for line in done.stdout.splitlines() if line.startswith("Model name")]
    return names[0] if names else "unknown processor"


if __name__ == "__main__":
    main()
