"""What a task's numbers mean for whoever waits for it: percent, time to go, and when to ask again. Pure."""

from dataclasses import dataclass

from exports.contracts import Phase, State
from exports.views import TaskView

_TAIL = {Phase.FETCH: 0.05, Phase.RENDER: 0.05, Phase.UPLOAD: 0.03}
"""What render and upload still take, as a part of the time that the rows take."""
_POLL_MS = (500, 5000)
_POLLS = 20
"""A caller that follows `poll_after_ms` asks about so many times."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """percent: 0 to 100, never falls in an epoch; 100 only when succeeded. queue_position: from 1.

    eta_s, poll_after_ms: None where there is nothing to wait for, or nothing to tell from.
    """

    percent: int
    rows_per_second: int | None
    eta_s: int | None
    queue_position: int | None
    poll_after_ms: int | None


def outlook(view: TaskView, *, stalled: bool) -> Outlook:
    """stalled: nothing moves, so no time can be told."""
    speed = view.rows_per_second if view.state is State.RUNNING and not stalled else None
    eta_s = _eta_s(view, speed=speed) if speed else None
    return Outlook(
        percent=_percent(view),
        rows_per_second=round(speed) if speed else None,
        eta_s=max(1, round(eta_s)) if eta_s is not None else None,
        queue_position=view.queued_before + 1 if view.queued_before is not None else None,
        poll_after_ms=None if view.state.ended else _poll_after_ms(view, eta_s=eta_s, stalled=stalled),
    )


def _percent(view: TaskView) -> int:
    if view.state is State.SUCCEEDED:
        return 100
    if view.total is None:
        return 0
    return 99 * view.processed // view.total if view.total else 99


def _eta_s(view: TaskView, *, speed: float) -> float | None:
    if view.phase is None or view.total is None:
        return None
    to_read = (view.total - view.processed) / speed if view.phase is Phase.FETCH else 0
    return to_read + _TAIL[view.phase] * view.total / speed


def _poll_after_ms(view: TaskView, *, eta_s: float | None, stalled: bool) -> int:
    low, high = _POLL_MS
    if stalled:
        return high
    if view.queued_before is not None:
        return min(high, max(low, 500 * (view.queued_before + 1)))
    return min(high, max(low, round((eta_s or 0) * 1000 / _POLLS)))
