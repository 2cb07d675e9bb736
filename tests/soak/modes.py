"""What `make soak` can do: each mode alone reaches one of the figures that docs/reliability.md names."""

from collections.abc import Mapping
from dataclasses import dataclass

SWEEPS = ("kill_sweep", "zombie_sweep", "failed_calls")


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests of the fault suite. arguments: of pytest, below `tests/reliability`."""

    files: tuple[str, ...]
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loads:
    """Loads and faults on real processes, for each database in turn.

    count: of faults, shared out to them; chance makes it a tenth less at the most.
    """

    faults: Mapping[str, int]
    every_s: float
    count: int


MODES: dict[str, Suite | Loads] = {
    # 5,300 lines of 85,000, and those around commits.
    "kills": Suite(("kill_sweep",), ("--reliability-every=16",)),
    "zombies": Suite(("zombie_sweep",), ("--reliability-every=9",)),
    "calls": Suite(("failed_calls",), ("--reliability-every=5",)),
    "workers": Loads({"kill_worker": 1}, every_s=0.5, count=600),
    "submits": Suite(("races",), ("-k", "2000")),
    "cancels": Suite(("processes",), ("-k", "cancel_at_any_moment and 500")),
    "hints": Suite(("handovers",), ("-k", "hints_stay_few and 10000")),
    "valkey": Loads({"kill_redis": 1}, every_s=3, count=70),
}
