"""The addresses of tasks: submit, list, read, cancel, run again."""

import datetime as dt
import hashlib
import math
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.http import parse_etags
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from exports import messages, service
from exports.api import audit, base, bodies, links, shapes, stream, waiting
from exports.api.base import ApiView, language_of, principal_of
from exports.api.rendering import json_response, to_json
from exports.api.representation import represent, to_millisecond
from exports.contracts import ExportRequest, Right, State
from exports.errors import FieldInvalid, StoreUnavailable, TaskUnknown
from exports.progress import outlook
from exports.telemetry import trace
from exports.views import TaskView

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key", str, OpenApiParameter.HEADER, description="Stands in for a missing requestId."
)
TRACEPARENT = OpenApiParameter(
    "traceparent", str, OpenApiParameter.HEADER, description="W3C trace context; made when missing."
)


class Exports(ApiView):
    """A requestId belongs to one body of its owner; the same one answers the same task, also when that has ended."""

    rights: ClassVar = {
        "GET": (Right.VIEW, Right.OPS_READ),
        "HEAD": (Right.VIEW, Right.OPS_READ),
        "POST": (Right.SUBMIT,),
    }

    @extend_schema(
        operation_id="submit",
        summary="Submit an export",
        parameters=[IDEMPOTENCY_KEY, TRACEPARENT, shapes.PREFER, shapes.LANGUAGE],
        request=shapes.SubmitRequest,
        responses={
            202: OpenApiResponse(shapes.Submitted, description="Created."),
            200: OpenApiResponse(shapes.Submitted, description="This requestId was known; nothing was created."),
            **shapes.refusals(400, 406, 409, 410, 413, 415, 422, 429, 503),
        },
    )
    def post(self, request: Request) -> HttpResponse:
        wanted = _export_request(request)
        submitted = service.submit(wanted, traceparent=trace.current.get())
        ids = {"task_id": submitted.task_id, "trace_id": submitted.trace_id}
        result = "created" if submitted.created else "known"
        audit.record(request, "submit", **ids, result=result, created=submitted.created)
        wait_s = waiting.wanted_s(request)
        ended = waiting.until_ended(request, submitted.task_id, wait_s=wait_s) if wait_s else None
        url = reverse("task", kwargs={"task_id": submitted.task_id})
        answer = {
            "taskId": submitted.task_id,
            "state": ended.state if ended else submitted.state,
            "progressUrl": url,
        }
        response = json_response(answer, status=202 if submitted.created else 200)
        response["Location"] = url
        return _with_preference(response, wait_s=wait_s if ended else 0)

    @extend_schema(
        operation_id="list",
        summary="One's own exports, newest first",
        description="Of one state, behind a task, or those that changed since the last answer.",
        parameters=[
            OpenApiParameter("state", str, enum=[state.value for state in State]),
            OpenApiParameter("limit", int, description="1 to 100; 50 without it."),
            OpenApiParameter("before", str, description="A taskId: the page behind it."),
            OpenApiParameter(
                "changedSince", OpenApiTypes.DATETIME, description="`changedAt` of the last answer: what changed since."
            ),
            shapes.LANGUAGE,
        ],
        responses={200: shapes.TaskList, **shapes.refusals(400, 406, 503)},
    )
    def get(self, request: Request) -> HttpResponse:
        query = bodies.validated(bodies.ListQuery, request.query_params.dict())
        if query["changedSince"]:
            moment, changed = service.list_changed(principal=principal_of(request), since=query["changedSince"])
            return _listing(request, changed, following=None, moment=moment)
        limit, moment = query["limit"], service.now()
        found = service.list_tasks(
            principal=principal_of(request), state=query["state"], limit=limit + 1, before=query["before"]
        )
        page = found[:limit]
        following = page[-1].task_id if len(found) > limit else None
        return _listing(request, page, following=following, moment=moment)


class Task(ApiView):
    """The nine frozen fields are always there. A poll with `If-None-Match` costs little while nothing has changed.

    With `Accept: text/event-stream` every change is an event: `progress`, and `end` for the last one.
    """

    renderer_classes: Any = (JSONRenderer, stream.EventStream)

    rights: ClassVar = {
        "GET": (Right.VIEW, Right.OPS_READ),
        "HEAD": (Right.VIEW, Right.OPS_READ),
        "DELETE": (Right.SUBMIT, Right.OPS_ACT),
    }

    @extend_schema(
        operation_id="read",
        summary="Progress and result of an export",
        parameters=[
            shapes.PREFER,
            shapes.LANGUAGE,
            OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER),
            OpenApiParameter("Last-Event-ID", str, OpenApiParameter.HEADER, description="Of a stream that broke off."),
        ],
        responses={
            (200, "application/json"): shapes.Task,
            (200, "text/event-stream"): shapes.StreamEvent,
            204: OpenApiResponse(description="Of a stream: the task has ended, and `Last-Event-ID` is its last event."),
            304: OpenApiResponse(description="Not changed since the ETag that was sent."),
            **shapes.refusals(404, 406, 410, 503),
        },
    )
    def get(self, request: Request, task_id: str) -> HttpResponseBase:
        def read() -> TaskView:
            return service.read_task(known_form(task_id), principal=principal_of(request))

        if stream.wanted(request):
            return stream.follow(request, read(), read=read, tell=lambda view: _tagged(request, view))
        wait_s = waiting.wanted_s(request)
        waited = waiting.until_ended(request, known_form(task_id), wait_s=wait_s) if wait_s else None
        view = waited or read()
        response = _with_pace(_conditional(request, view), view)
        return _with_preference(response, wait_s=wait_s if waited else 0)

    @extend_schema(
        operation_id="delete",
        summary="Delete an ended export and its file now",
        description="Its addresses answer 410 `task_deleted` from then on. Deleting it again is fine.",
        parameters=[OpenApiParameter("reason", str, description="Kept with who and when; at most 200 characters.")],
        responses={
            204: OpenApiResponse(description="Deleted."),
            **shapes.refusals(400, 404, 406, 409, 410, 413, 415, 503),
        },
    )
    def delete(self, request: Request, task_id: str) -> HttpResponse:
        for name in base.body_of(request):
            raise FieldInvalid(name, messages.NOT_IN_A_BODY)
        query = bodies.validated(bodies.DeleteQuery, request.query_params.dict())
        done = service.delete(known_form(task_id), principal=principal_of(request), reason=query["reason"])
        audit.record(request, "delete", task_id=task_id, trace_id=done.task.trace_id, result="deleted")
        if not done.file_removed:
            raise StoreUnavailable("the file goes when the store is back")
        return HttpResponse(status=204)


class Cancel(ApiView):
    """Of a failed task it gives up what a rerun would need. A succeeded task cannot be cancelled."""

    rights: ClassVar = {"POST": (Right.SUBMIT, Right.OPS_ACT)}

    @extend_schema(
        operation_id="cancel",
        summary="Cancel an export",
        parameters=[shapes.LANGUAGE],
        request=None,
        responses={
            202: OpenApiResponse(shapes.Task, description="Accepted; `cancelled` within 10 s."),
            200: OpenApiResponse(shapes.Task, description="Was cancelled already."),
            **shapes.refusals(404, 406, 409, 410, 503),
        },
    )
    def post(self, request: Request, task_id: str) -> HttpResponse:
        principal = principal_of(request)
        before = service.read_task(known_form(task_id), principal=principal)
        if before.state is State.CANCELLED:
            return json_response(task_body(request, before))
        view = service.cancel(task_id, principal=principal)
        audit.record(request, "cancel", task_id=task_id, trace_id=view.trace_id, result=view.state)
        return json_response(task_body(request, view), status=202)


class Rerun(ApiView):
    """Pages that are committed are not read again, unless the task starts from scratch."""

    rights: ClassVar = {"POST": (Right.SUBMIT, Right.OPS_ACT)}

    @extend_schema(
        operation_id="rerun",
        summary="Run a failed export again, from where it stopped",
        parameters=[shapes.LANGUAGE],
        request=shapes.RerunRequest,
        responses={
            202: OpenApiResponse(shapes.Task, description="Queued again."),
            **shapes.refusals(400, 404, 406, 409, 410, 413, 415, 503),
        },
    )
    def post(self, request: Request, task_id: str) -> HttpResponse:
        body = bodies.validated(bodies.RerunBody, base.body_of(request))
        view = service.rerun(known_form(task_id), principal=principal_of(request), from_scratch=body["fromScratch"])
        facts = {"fromScratch": body["fromScratch"], "epoch": view.epoch}
        audit.record(request, "rerun", task_id=task_id, trace_id=view.trace_id, result=f"run {view.epoch}", **facts)
        return json_response(task_body(request, view), status=202)


def known_form(task_id: str) -> str:
    """The id if it can be one. Raises: TaskUnknown, the same answer as for an id that nobody has."""
    if not bodies.TASK_ID.fullmatch(task_id):
        raise TaskUnknown
    return task_id


def task_body(request: Request, view: TaskView) -> dict[str, object]:
    url = _download_url(request, view) if service.keeps_file(view) else None
    return represent(view, language=language_of(request), download_url=url)


def _export_request(request: Request) -> ExportRequest:
    data = bodies.with_idempotency_key(base.body_of(request), request.headers.get("Idempotency-Key"))
    body = bodies.validated(bodies.SubmitBody, data)
    return wanted_export(request, body, request_id=body["requestId"])


def wanted_export(request: Request, body: Mapping[str, Any], *, request_id: str) -> ExportRequest:
    """What a validated body asks for, by whoever sends it."""
    principal = principal_of(request)
    return ExportRequest(
        kind=service.default_kind(),
        owner=principal.owner,
        request_id=request_id,
        first_day=body["from"],
        last_day=body["to"],
        format=body["format"],
        masked=service.must_mask(principal),
    )


def _download_url(request: Request, view: TaskView) -> str:
    query = links.sign(view.task_id, principal=principal_of(request), epoch=view.epoch, now_s=time.time())
    return f"{reverse('download', kwargs={'task_id': view.task_id})}?{query}"


def _listing(request: Request, views: list[TaskView], *, following: str | None, moment: dt.datetime) -> HttpResponse:
    tasks = [task_body(request, view) for view in views]
    return json_response({"tasks": tasks, "next": following, "changedAt": to_millisecond(moment)})


def _tagged(request: Request, view: TaskView) -> tuple[str, bytes]:
    """Digest and bytes of a task's body."""
    body = to_json(task_body(request, view))
    return hashlib.sha256(body).hexdigest()[:32], body


def _with_pace(response: HttpResponse, view: TaskView) -> HttpResponse:
    """`Retry-After` in whole seconds, for clients that do not read `pollAfterMs`."""
    poll_after_ms = outlook(view, stalled=service.is_stalled(view)).poll_after_ms
    if poll_after_ms is not None:
        response["Retry-After"] = str(math.ceil(poll_after_ms / 1000))
    return response


def _with_preference(response: HttpResponse, *, wait_s: int) -> HttpResponse:
    if wait_s:
        response["Preference-Applied"] = f"wait={wait_s}"
    return response


def _conditional(request: Request, view: TaskView) -> HttpResponse:
    digest, body = _tagged(request, view)
    etag = f'"{digest}"'
    if matches(request.META.get("HTTP_IF_NONE_MATCH", ""), etag):
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(body, content_type="application/json")
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    return response


def matches(if_none_match: str, etag: str) -> bool:
    """Weak comparison, as RFC 9110 asks: a proxy that compresses weakens the tag on its way."""
    tags = parse_etags(if_none_match)
    return tags == ["*"] or etag in (tag.removeprefix("W/") for tag in tags)
