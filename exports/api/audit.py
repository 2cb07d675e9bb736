"""Who did what to which task, from where: one log line each. Never a link, never a credential."""

from rest_framework.request import Request

from exports.api.base import principal_of
from exports.telemetry.logs import Field, events

_log = events(__name__)


def record(request: Request, action: str, *, task_id: str, trace_id: str, **facts: Field) -> None:
    """action: what was allowed and done: `submit`, `cancel`, `rerun`, `download`, `delete`."""
    address = request.META.get("REMOTE_ADDR", "")
    ids = {"taskId": task_id, "traceId": trace_id}
    _log.info(f"audit.{action}", **ids, owner=principal_of(request).owner, address=address, **facts)
