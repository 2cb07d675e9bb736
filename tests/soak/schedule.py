"""What happens when: the same seed gives the same loads and faults at the same times."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LOADS = {"submit": 10, "duplicate": 3, "cancel": 2}
FAULTS = {
    "kill_worker": 8,
    "stop_worker": 4,
    "end_worker": 1,
    "kill_web": 2,
    "cut_redis": 3,
    "cut_database": 3,
    "end_sessions": 2,
    "kill_redis": 1,
    "freeze_redis": 1,
}
"""Name of the method that does it → how often, relative to the others."""

LOAD_EVERY_S = 1.0
FAULT_EVERY_S = 1.5


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """at_s: after the start. dice: numbers in [0, 1) for all that it has to choose."""

    at_s: float
    name: str
    dice: tuple[float, ...]


def schedule(
    seed: int, *, seconds: float, faults: Mapping[str, int] = FAULTS, fault_every_s: float = FAULT_EVERY_S
) -> list[Event]:
    """All events of a run, in order; loads do not depend on faults."""
    loads = _events(random.Random(f"loads {seed}"), LOADS, every_s=LOAD_EVERY_S, seconds=seconds)
    chosen = _events(random.Random(f"faults {seed}"), faults, every_s=fault_every_s, seconds=seconds)
    return sorted([*loads, *chosen])


def _events(rng: random.Random, names: Mapping[str, int], *, every_s: float, seconds: float) -> Iterator[Event]:
    at_s = 0.0
    while (at_s := at_s + rng.expovariate(1 / every_s)) < seconds:
        [name] = rng.choices(list(names), list(names.values()))
        yield Event(round(at_s, 3), name, tuple(rng.random() for _ in range(4)))
