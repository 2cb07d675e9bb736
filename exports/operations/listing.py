"""Lists of tasks by what they have in common, page by page."""

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass

from exports.contracts import Format, State
from exports.errors import FieldInvalid
from exports.operations.overview import stalled_ms
from exports.state.store import store
from exports.state.watching import Match, Place
from exports.views import TaskView

_ORDER = (State.FAILED, State.RUNNING, State.QUEUED, State.SUCCEEDED, State.CANCELLED)
_PLACE = re.compile(r"([a-z]+)\.(\d+)\.(\w+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which tasks; an empty value asks for all.

    text: a part of taskId, requestId or traceId. changed_within, changed_before: how long ago they entered their state.
    """

    state: State | None = None
    stalled: bool = False
    owner: str = ""
    format: Format | None = None
    code: str = ""
    text: str = ""
    changed_within: dt.timedelta | None = None
    changed_before: dt.timedelta | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a list. more: what to pass as `behind` for the next page; empty at the end."""

    tasks: list[TaskView]
    more: str


def find(wanted: Wanted, *, limit: int = 50, behind: str = "") -> Listed:
    """Tasks of all owners: failed first, then running, queued, succeeded, cancelled; the latest of each first.

    Raises: FieldInvalid for a `behind` that this has not given, StateUnavailable.
    """
    first, place = _parse_place(behind)
    match = _match(wanted)
    found: list[tuple[State, Place]] = []
    for state in _states(wanted):
        if _ORDER.index(state) < _ORDER.index(first) or len(found) > limit:
            continue
        start = place if state is first else None
        found += [(state, at) for at in store().find(state, match, limit=limit + 1 - len(found), behind=start)]
    views = store().read_all([at.task_id for _, at in found[:limit]])
    return Listed(views, _place_text(*found[limit - 1]) if len(found) > limit else "")


def _states(wanted: Wanted) -> Iterable[State]:
    """The states that can hold such a task."""
    narrow = [
        *([{wanted.state}] if wanted.state else []),
        *([{State.RUNNING}] if wanted.stalled else []),
        *([{State.FAILED}] if wanted.code else []),
    ]
    return [state for state in _ORDER if all(state in states for states in narrow)]


def _match(wanted: Wanted) -> Match:
    asks_for_age = wanted.changed_within is not None or wanted.changed_before is not None
    now_ms = store().now_ms() if asks_for_age else 0
    return Match(
        owner=wanted.owner,
        format=wanted.format or "",
        code=wanted.code,
        text=wanted.text,
        quiet_ms=stalled_ms() if wanted.stalled else 0,
        oldest_ms=_ago(now_ms, wanted.changed_within),
        newest_ms=_ago(now_ms, wanted.changed_before),
    )


def _ago(now_ms: int, age: dt.timedelta | None) -> int | None:
    return None if age is None else now_ms - int(age.total_seconds() * 1000)


def _parse_place(behind: str) -> tuple[State, Place | None]:
    if not behind:
        return _ORDER[0], None
    found = _PLACE.fullmatch(behind)
    if not found or found[1] not in set(State):
        raise FieldInvalid("behind", "is not the place of a list")
    return State(found[1]), Place(found[2], found[3])


def _place_text(state: State, at: Place) -> str:
    return f"{state}.{at.score}.{at.task_id}"
