"""Which tasks a principal may see, and which it may change. Whatever else the door does starts here."""

import datetime as dt
import time

from exports.conf import conf
from exports.contracts import Principal, Right
from exports.errors import TaskDeleted, TaskGone, TaskUnknown
from exports.pipeline import identity
from exports.state.store import store
from exports.views import TaskView


def read(task_id: str, *, principal: Principal) -> TaskView:
    """A task that is not deleted. Raises: TaskUnknown (also for another owner's), TaskGone, TaskDeleted."""
    view = find(task_id, principal=principal)
    if view.deleted:
        raise TaskDeleted(view.deleted)
    return view


def find(task_id: str, *, principal: Principal) -> TaskView:
    """A task, deleted or not. Raises: TaskUnknown, TaskGone."""
    view = store().read(task_id)
    if view is None:
        if _expired(task_id):
            raise TaskGone("the task is kept no longer")
        raise TaskUnknown("there is no such task")
    if view.request.owner != principal.owner and not (principal.may(Right.OPS_READ) or principal.may(Right.OPS_ACT)):
        raise TaskUnknown("there is no such task")
    return view


def _expired(task_id: str) -> bool:
    """Whether an unknown task id is older than tasks are kept; the id tells its age."""
    made_at_s = identity.made_at_s(task_id)
    return made_at_s is not None and time.time() - made_at_s > dt.timedelta(days=conf().state_days).total_seconds()


def act_on(task_id: str, *, principal: Principal) -> TaskView:
    """A task that the principal may change: its own, or any with the right to act."""
    return may_act_on(read(task_id, principal=principal), principal=principal)


def may_act_on(view: TaskView, *, principal: Principal) -> TaskView:
    """The task itself. Raises: TaskUnknown when the principal may not change it."""
    if view.request.owner != principal.owner and not principal.may(Right.OPS_ACT):
        raise TaskUnknown("there is no such task")
    return view
