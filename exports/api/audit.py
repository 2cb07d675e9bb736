"""Who did what to which task over the API, from where."""

from rest_framework.request import Request

from exports.api.base import principal_of
from exports.pipeline import audit
from exports.telemetry.logs import Field


def record(request: Request, action: str, *, task_id: str, trace_id: str, result: str, **facts: Field) -> None:
    """action: what was allowed and done: `submit`, `cancel`, `rerun`, `download`, `delete`, `replay`."""
    by, address = principal_of(request).owner, request.META.get("REMOTE_ADDR", "")
    audit.record(action, task_id=task_id, trace_id=trace_id, by=by, address=address, result=result, **facts)
