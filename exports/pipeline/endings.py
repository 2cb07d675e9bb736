"""What the end of a task means outside Redis: a line in the log, a hint to tell others, and nothing left behind.

Called with the word that a script answered, wherever a script can end a task. The same script has put the task on
`export:notify`; it leaves that list when its end is in the log. After a kill in between, the sweep calls this again:
every end is told at least once, and twice only by a kill between the line and the mark.
"""

import datetime as dt
from contextlib import suppress

from exports import kinds, storage
from exports.conf import conf
from exports.contracts import ExportRequest, State, Step
from exports.errors import SettingInvalid, StateUnavailable, StepFailed
from exports.pipeline import hints, outbox
from exports.state.store import store
from exports.telemetry import logs
from exports.views import TaskView

_events = logs.events(__name__)


def file_expires_at(view: TaskView) -> dt.datetime | None:
    """When the file of a task is removed; None while there is none, and once it was deleted."""
    if view.state is not State.SUCCEEDED or view.finished_at is None or view.deleted:
        return None
    return view.finished_at + dt.timedelta(days=conf().file_days)


def settle(task_id: str, request: ExportRequest, word: str, *, code: str = "") -> None:
    """Nothing unless the word is an end state. A failed task keeps what a rerun needs. code: why it failed.

    Objects in a bucket are left to the sweep: a store that hangs must hold up neither a cancel nor a reader.
    """
    if word not in (State.SUCCEEDED, State.FAILED, State.CANCELLED):
        return
    tell = _events.error if word == State.FAILED else _events.info
    tell("task.ended", state=word, code=code or None)
    # The sweep tells it once more, and says so where the endpoints are wrong.
    with suppress(StateUnavailable, SettingInvalid):
        outbox.keep_end(task_id)
    with suppress(StateUnavailable):
        if store().next_tasks(Step.PLAN, 1):
            # The place of this task may be what one in the queue has waited for.
            hints.send(hints.PLAN)
    try:
        if word == State.CANCELLED:
            kinds.get(request.kind).release(task_id)
        if word != State.FAILED and not storage.spool().remote:
            storage.spool().remove(task_id)
    except (StepFailed, SettingInvalid, OSError) as error:
        _events.error("cleanup.failed", error=error)


def free(task_id: str, request: ExportRequest) -> None:
    """Take away what a task holds in its kind and in the spool. Doing it again is harmless."""
    kinds.get(request.kind).release(task_id)
    storage.spool().remove(task_id)
