"""`Prefer: wait=N`: an answer that waits for the end of its task, where there is a place to wait."""

import re
import time

from rest_framework.request import Request

from exports import service
from exports.api import slots
from exports.api.base import principal_of
from exports.views import TaskView

LONGEST_S = 10
_WAIT = re.compile(r'wait\s*=\s*"?([0-9]{1,9})"?', re.ASCII | re.IGNORECASE)
_PAUSE = 1 / 20
"""Between two looks, as a part of the time waited so far, within `_PAUSES_S`: so late is the end seen."""
_PAUSES_S = (0.02, 0.25)


def wanted_s(request: Request) -> int:
    """Seconds, at most `LONGEST_S`; 0 for none. The first `wait` counts, and what is not understood is ignored.

    Source: RFC 7240, sections 2 and 4.3.
    """
    for preference in request.META.get("HTTP_PREFER", "").split(","):
        if found := _WAIT.fullmatch(preference.partition(";")[0].strip()):
            return min(LONGEST_S, int(found[1]))
    return 0


def until_ended(request: Request, task_id: str, *, wait_s: int) -> TaskView | None:
    """The task at its end, or as it is after the wait; None at once when there is no place to wait.

    Raises: as `service.read_task`.
    """
    slot = slots.take()
    if slot is None:
        return None
    try:
        return _poll(request, task_id, deadline=time.monotonic() + wait_s)
    finally:
        slot.release()


def _poll(request: Request, task_id: str, *, deadline: float) -> TaskView:
    shortest_s, longest_s = _PAUSES_S
    began = time.monotonic()
    while True:
        view = service.read_task(task_id, principal=principal_of(request))
        now = time.monotonic()
        if view.state.ended or now >= deadline:
            return view
        pause_s = min(longest_s, max(shortest_s, (now - began) * _PAUSE))
        time.sleep(min(pause_s, deadline - now))
