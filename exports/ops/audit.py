"""Which operator did what to which task on the ops page, from where and why."""

from django.http import HttpRequest

from exports.contracts import Principal
from exports.pipeline import audit
from exports.telemetry.logs import Field


def record(
    request: HttpRequest,
    action: str,
    *,
    principal: Principal,
    task_id: str,
    trace_id: str,
    result: str,
    **facts: Field,
) -> None:
    """action: what was done: `cancel`, `rerun`, `delete`, `replay`, `download`."""
    by, address = principal.owner, request.META.get("REMOTE_ADDR", "")
    audit.record(action, task_id=task_id, trace_id=trace_id, by=by, address=address, result=result, **facts)
