"""The service at a glance."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exports.conf import conf
from exports.contracts import State
from exports.pipeline import hints
from exports.state.replies import moment
from exports.state.store import store
from exports.state.watching import HISTORY_MINUTES, Match, Signs
from exports.views import TaskView

_SHOWN = 10
_LOOKED_AT = 200
"""Running tasks whose leases are read to tell what workers do, and stalled ones that are counted."""


@dataclass(frozen=True, slots=True)
class Queue:
    """One kind of work. tasks: that have a step of it. hints: that no worker has taken; None when nobody can tell."""

    name: str
    tasks: int
    hints: int | None


@dataclass(frozen=True, slots=True)
class WorkerView:
    """doing: (task id, step) of its leases."""

    name: str
    group: str
    busy: bool
    doing: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Minute:
    """What was done in one minute. ended: state → tasks that entered it."""

    at: dt.datetime
    rows: int
    ended: dict[State, int]


@dataclass(frozen=True, slots=True)
class Overview:
    """The service now. rows_per_second: over the last one to two minutes. running, failed: the latest few."""

    at: dt.datetime
    states: dict[State, int]
    stalled: int
    rows_per_second: float
    queues: list[Queue]
    oldest_queued: dt.timedelta | None
    workers: list[WorkerView]
    minutes: list[Minute]
    running: list[TaskView]
    failed: list[TaskView]


def overview() -> Overview:
    """Everything at a glance. Its cost grows with the tasks that run, not with all. Raises: StateUnavailable."""
    signs = store().signs()
    lengths = store().queue_lengths()
    waiting = hints.all_waiting({sign.spool for sign in signs.workers.values()})
    running = [place.task_id for place in store().find(State.RUNNING, Match(), limit=_LOOKED_AT)]
    failed = [place.task_id for place in store().find(State.FAILED, Match(), limit=_SHOWN)]
    views = store().read_all([*running[:_SHOWN], *failed])
    oldest = signs.oldest_queued_ms
    return Overview(
        at=moment(signs.now_ms),
        states=dict(signs.states),
        stalled=len(store().find(State.RUNNING, Match(quiet_ms=stalled_ms()), limit=_LOOKED_AT)),
        rows_per_second=_rows_per_second(signs),
        queues=[Queue(name, tasks, waiting[name] if waiting else None) for name, tasks in lengths.items()],
        oldest_queued=None if oldest is None else dt.timedelta(milliseconds=signs.now_ms - oldest),
        workers=_workers(signs, running),
        minutes=_minutes(signs),
        running=[view for view in views if view.state is State.RUNNING],
        failed=[view for view in views if view.state is State.FAILED],
    )


def stalled_ms() -> int:
    return conf().stalled_after_s * 1000


def _rows_per_second(signs: Signs) -> float:
    minute, since_ms = divmod(signs.now_ms, 60_000)
    rows = sum(signs.minutes.get(at, {}).get("rows", 0) for at in (minute - 1, minute))
    return rows * 1000 / (60_000 + since_ms)


def _workers(signs: Signs, running: Sequence[str]) -> list[WorkerView]:
    doing: dict[str, list[tuple[str, str]]] = {}
    for task_id, leases in store().leases(running).items():
        for lease in leases:
            doing.setdefault(lease.worker, []).append((task_id, lease.step))
    alive = [
        WorkerView(name, sign.group, sign.busy, tuple(sorted(doing.get(name, []))))
        for name, sign in signs.workers.items()
    ]
    return sorted(alive, key=lambda worker: (worker.group, worker.name))


def _minutes(signs: Signs) -> list[Minute]:
    """The last hours without a hole, the present minute last; empty when nothing was done in them."""
    if not signs.minutes:
        return []
    last = signs.now_ms // 60_000
    return [_minute(at, signs.minutes.get(at, {})) for at in range(last - HISTORY_MINUTES + 1, last + 1)]


def _minute(at: int, counts: Mapping[str, int]) -> Minute:
    ended = {state: counts[state] for state in State if state.ended and state in counts}
    return Minute(moment(at * 60_000), counts.get("rows", 0), ended)
