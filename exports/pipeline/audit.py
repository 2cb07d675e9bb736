"""Who did what to which task, from where: one log line, and one entry of the task's bounded list in Redis."""

from exports.errors import StateUnavailable
from exports.state.keys import TaskRef
from exports.state.store import store
from exports.telemetry import logs
from exports.telemetry.logs import Field

_events = logs.events(__name__)


def record(
    action: str, *, task_id: str, trace_id: str, by: str, result: str, address: str = "", **facts: Field
) -> None:
    """Never a link, never a credential. action: what was allowed and done. address: empty for a command.

    What was done stands: without Redis only the log tells it.
    """
    ids = {"taskId": task_id, "traceId": trace_id}
    _events.info(f"audit.{action}", **ids, owner=by, address=address, **facts)
    try:
        store().append_audit(TaskRef(task_id, "", ""), action=action, result=result, address=address, by=by)
    except StateUnavailable as error:
        _events.warning("audit.not_kept", **ids, error=error)
