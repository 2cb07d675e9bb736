"""The shapes of bodies, for the published schema. Answers are made by `representation`; tests hold the two together."""

import copy
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from exports.api import problems
from exports.callbacks import CallbackEvent, CallbackResult, CallbackState
from exports.contracts import Drift, Format, Phase, QueueName, State
from exports.messages import CAUSES, ISSUES, PROBLEMS

AnyField = serializers.Field[Any, Any, Any, Any]


def _shape(name: str, **fields: AnyField) -> type[serializers.Serializer[Any]]:
    return type(name, (serializers.Serializer,), {"get_fields": lambda _: copy.deepcopy(fields), "__doc__": None})


def _text(**options: Any) -> serializers.CharField:
    return serializers.CharField(**options)


def _number(**options: Any) -> serializers.IntegerField:
    return serializers.IntegerField(**options)


def _time(*, allow_null: bool = True) -> serializers.DateTimeField:
    return serializers.DateTimeField(allow_null=allow_null)


def _state() -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=[state.value for state in State])


def _phase() -> serializers.ChoiceField:
    return serializers.ChoiceField(choices=[phase.value for phase in Phase], allow_null=True)


_SUBMIT: dict[str, AnyField] = {
    "requestId": _text(max_length=255, help_text="Chosen by the caller; the same one answers the same task."),
    "from": serializers.DateField(help_text="First day, in the business time zone."),
    "to": serializers.DateField(help_text="Last day, included."),
    "format": serializers.ChoiceField(choices=[format_.value for format_ in Format]),
}
SubmitRequest = _shape("SubmitRequest", **_SUBMIT)
_QUEUES = [queue.value for queue in QueueName]
DryRunRequest = _shape("DryRunRequest", **{name: field for name, field in _SUBMIT.items() if name != "requestId"})
Submitted = _shape("Submitted", taskId=_text(), state=_state(), progressUrl=_text())
RerunRequest = _shape(
    "RerunRequest",
    fromScratch=serializers.BooleanField(
        required=False, help_text="Forget what is done; needed after a change of specification."
    ),
)
ErrorDetail = _shape(
    "ErrorDetail",
    phase=_phase(),
    shardId=_text(allow_null=True),
    page=_number(allow_null=True),
    cursor=_text(allow_null=True),
    attempts=_number(),
    retryable=serializers.BooleanField(),
)
CellWarning = _shape("CellWarning", code=_text(), count=_number(), keys=serializers.ListField(child=_text()))
DriftShape = _shape("Drift", kind=serializers.ChoiceField(choices=[kind.value for kind in Drift]), difference=_number())
Shards = _shape("Shards", total=_number(), done=_number(), running=_number())
_TASK: dict[str, AnyField] = {
    "taskId": _text(),
    "state": _state(),
    "phase": _phase(),
    "processed": _number(help_text="Rows; never falls."),
    "total": _number(allow_null=True, help_text="Rows; null until planned."),
    "startedAt": _time(),
    "finishedAt": _time(),
    "error": _text(allow_null=True, help_text="One sentence, by Accept-Language; only of a failed task."),
    "downloadUrl": _text(allow_null=True, help_text="Works as a plain link for some minutes; made anew at each read."),
    "requestId": _text(),
    "from": serializers.DateField(),
    "to": serializers.DateField(),
    "format": serializers.ChoiceField(choices=[format_.value for format_ in Format]),
    "createdAt": _time(allow_null=False),
    "errorCode": serializers.ChoiceField(choices=sorted(CAUSES), allow_null=True, help_text="See docs/codes.md."),
    "errorDetail": ErrorDetail(allow_null=True),
    "warnings": CellWarning(many=True),
    "fileName": _text(allow_null=True),
    "fileSize": _number(allow_null=True, help_text="Bytes."),
    "sha256": _text(allow_null=True),
    "expiresAt": _time(),
    "asOf": _time(),
    "drift": DriftShape(allow_null=True),
    "shards": Shards(),
    "cancelRequested": serializers.BooleanField(),
    "traceId": _text(),
    "progress": _number(min_value=0, max_value=100, help_text="Percent; 100 only when succeeded."),
    "rowsPerSecond": _number(
        allow_null=True, help_text="From the rows committed in the last 10 to 20 seconds; null where none was."
    ),
    "etaSeconds": _number(
        allow_null=True, help_text="Until the file is there, from the same rows; null where nobody can tell."
    ),
    "queue": serializers.ChoiceField(
        choices=_QUEUES, allow_null=True, help_text="How much there is to read; null until planned."
    ),
    "queuePosition": _number(allow_null=True, help_text="From 1, of all that are queued; null unless queued."),
    "stalled": serializers.BooleanField(
        help_text="Running without progress for `stalled_after_s`; it goes on by itself."
    ),
    "pollAfterMs": _number(allow_null=True, help_text="When to ask again; null once the task has ended."),
}
Task = _shape("Task", **_TASK)
StreamEvent = _shape(
    "StreamEvent",
    id=_text(help_text="Digest of the data; `Last-Event-ID` of a reader who comes back."),
    event=serializers.ChoiceField(choices=["progress", "end"]),
    data=_text(help_text="The task as JSON."),
)
TaskList = _shape(
    "TaskList",
    tasks=Task(many=True),
    next=_text(allow_null=True, help_text="`before` of the next page."),
    changedAt=serializers.DateTimeField(help_text="`changedSince` of the next poll."),
)
ShardRows = _shape("ShardRows", shardId=_text(), rows=_number(allow_null=True, help_text="Null: not counted in time."))
Span = _shape("Span", low=_number(), high=_number())
Issue = _shape("Issue", code=serializers.ChoiceField(choices=sorted(ISSUES)), message=_text())
DryRun = _shape(
    "DryRun",
    ok=serializers.BooleanField(help_text="False: the export would fail."),
    rows=_number(help_text="Of the moment; guessed where a shard was not counted in time."),
    shards=ShardRows(many=True, help_text="One a day."),
    suggestedQueue=serializers.ChoiceField(choices=_QUEUES, help_text="Where the export would wait for its turn."),
    sheets=_number(allow_null=True, help_text="Null for a format without sheets."),
    bytes=Span(),
    seconds=Span(),
    issues=Issue(many=True),
)
Attempt = _shape(
    "Attempt",
    attempt=_number(),
    sentAt=_time(allow_null=False),
    responseAt=_time(),
    result=serializers.ChoiceField(
        choices=[result.value for result in CallbackResult],
        allow_null=True,
        help_text="Null while it is under way, or if its sender died.",
    ),
    statusCode=_number(allow_null=True),
    durationMs=_number(allow_null=True),
    reason=_text(allow_null=True),
    responseBody=_text(allow_null=True, help_text="The first 1,024 characters."),
)
CallbackShape = _shape(
    "Callback",
    callbackId=_text(help_text="`webhook-id`."),
    event=serializers.ChoiceField(choices=[event.type for event in CallbackEvent]),
    endpoint=_text(),
    epoch=_number(),
    state=serializers.ChoiceField(choices=[state.value for state in CallbackState]),
    attempts=_number(),
    replays=_number(),
    createdAt=_time(allow_null=False),
    nextAttemptAt=_time(),
    payload=_text(help_text="The bytes that are sent and signed, as text."),
    log=Attempt(many=True, help_text="The last 50 attempts."),
)
CallbackList = _shape("CallbackList", callbacks=CallbackShape(many=True))
_TRIES: dict[str, AnyField] = {
    "attempts": _number(required=False, min_value=1, max_value=10, help_text="3 without it."),
    "backoffMultiplier": serializers.FloatField(
        required=False, min_value=1, max_value=10, help_text="Each pause against the one before it; 2 without it."
    ),
}
ReplayRequest = _shape(
    "ReplayRequest",
    **_TRIES,
    callbackId=_text(required=False, help_text="Without it all callbacks of the last event."),
)
ReplayFailedRequest = _shape("ReplayFailedRequest", since=serializers.DateTimeField(), **_TRIES)
Replayed = _shape("Replayed", replayed=_shape("ReplayedCallback", taskId=_text(), callbackId=_text())(many=True))
Health = _shape("Health", status=_text())
WrongField = _shape("WrongField", field=_text(), reason=_text())
ProblemShape = _shape(
    "Problem",
    type=_text(),
    title=_text(),
    status=_number(),
    detail=_text(),
    code=serializers.ChoiceField(choices=sorted(PROBLEMS), help_text="Stable; see docs/codes.md."),
    field=_text(required=False, help_text="Of `invalid_field`: the first field that is wrong."),
    errors=WrongField(many=True, required=False, help_text="Of `invalid_field`: all fields that are wrong."),
    running=Task(required=False, help_text="Of a 429: the caller's task that is first to end."),
)

PREFER = OpenApiParameter(
    "Prefer",
    str,
    OpenApiParameter.HEADER,
    description="`wait=N` (RFC 7240, N to 10): answer when the task has ended, after N seconds at the latest.",
)
LANGUAGE = OpenApiParameter("Accept-Language", str, OpenApiParameter.HEADER, description="`zh` (default) or `en`.")

_WHEN = {
    400: "The body or a field is wrong.",
    401: "No valid credentials.",
    403: "The right is missing, or the link is not valid.",
    404: "Unknown, or not yours.",
    406: "What `Accept` asks for cannot be served.",
    409: "The requestId belongs to another request, or the task's state does not allow it.",
    410: "Kept no longer, or the link is out of date.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    416: "The range lies outside of the file.",
    422: "More days than allowed.",
    429: "Too much under way; Retry-After says when to try again.",
    503: "Not available; Retry-After says when to try again.",
}


def refusals(*statuses: int, closed: bool = True) -> dict[tuple[int, str], OpenApiResponse]:
    """Problem details for these statuses, and for those that every closed address can answer."""
    return {
        (status, problems.CONTENT_TYPE): OpenApiResponse(ProblemShape, description=_WHEN[status])
        for status in sorted({*((401, 403) if closed else ()), *statuses})
    }


class IdentityScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How credentials are shown in the schema."""

    target_class = "exports.api.identity.Identity"
    name = "bearer"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "Or the headers of a trusted gateway."}


class LinkScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A download link stands in for the other credentials."""

    target_class = "exports.api.links.LinkOrIdentity"
    name = "link"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "query", "name": "link", "description": "The signature in `downloadUrl`."}

    def get_security_requirement(self, auto_schema: AutoSchema) -> list[dict[str, list[Any]]]:
        return [{"link": []}, {"bearer": []}]
