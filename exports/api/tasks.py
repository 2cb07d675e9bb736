"""The addresses of tasks: submit, list, read, cancel, run again."""

import hashlib
import time
from typing import ClassVar

from django.http import HttpResponse
from django.urls import reverse
from django.utils.http import parse_etags
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request

from exports import service
from exports.api import audit, base, bodies, links, shapes
from exports.api.base import ApiView, language_of, principal_of
from exports.api.rendering import json_response, to_json
from exports.api.representation import represent
from exports.contracts import ExportRequest, Right, State, TaskView
from exports.errors import TaskUnknown
from exports.telemetry.trace import parse_traceparent

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
        parameters=[IDEMPOTENCY_KEY, TRACEPARENT, shapes.LANGUAGE],
        request=shapes.SubmitRequest,
        responses={
            202: OpenApiResponse(shapes.Submitted, description="Created."),
            200: OpenApiResponse(shapes.Submitted, description="This requestId was known; nothing was created."),
            **shapes.refusals(400, 406, 409, 413, 415, 422, 503),
        },
    )
    def post(self, request: Request) -> HttpResponse:
        wanted = _export_request(request)
        submitted = service.submit(wanted, traceparent=parse_traceparent(request.headers.get("traceparent")))
        ids = {"task_id": submitted.task_id, "trace_id": submitted.trace_id}
        result = "created" if submitted.created else "known"
        audit.record(request, "submit", **ids, result=result, created=submitted.created)
        url = reverse("task", kwargs={"task_id": submitted.task_id})
        answer = {"taskId": submitted.task_id, "state": submitted.state, "progressUrl": url}
        response = json_response(answer, status=202 if submitted.created else 200)
        response["Location"] = url
        return response

    @extend_schema(
        operation_id="list",
        summary="One's own exports, newest first",
        parameters=[
            OpenApiParameter("state", str, enum=[state.value for state in State]),
            OpenApiParameter("limit", int, description="1 to 100; 50 without it."),
            OpenApiParameter("before", str, description="A taskId: the page behind it."),
            shapes.LANGUAGE,
        ],
        responses={200: shapes.TaskList, **shapes.refusals(400, 406, 503)},
    )
    def get(self, request: Request) -> HttpResponse:
        query = bodies.validated(bodies.ListQuery, request.query_params.dict())
        limit = query["limit"]
        found = service.list_tasks(
            principal=principal_of(request), state=query["state"], limit=limit + 1, before=query["before"]
        )
        page = found[:limit]
        following = page[-1].task_id if len(found) > limit else None
        return json_response({"tasks": [task_body(request, view) for view in page], "next": following})


class Task(ApiView):
    """The nine frozen fields are always there. A poll with `If-None-Match` costs little while nothing has changed."""

    rights: ClassVar = {
        "GET": (Right.VIEW, Right.OPS_READ),
        "HEAD": (Right.VIEW, Right.OPS_READ),
        "DELETE": (Right.SUBMIT, Right.OPS_ACT),
    }

    @extend_schema(
        operation_id="read",
        summary="Progress and result of an export",
        parameters=[shapes.LANGUAGE, OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER)],
        responses={
            200: shapes.Task,
            304: OpenApiResponse(description="Not changed since the ETag that was sent."),
            **shapes.refusals(404, 406, 410, 503),
        },
    )
    def get(self, request: Request, task_id: str) -> HttpResponse:
        view = service.read_task(known_form(task_id), principal=principal_of(request))
        return _conditional(request, to_json(task_body(request, view)))

    @extend_schema(
        operation_id="delete",
        summary="Delete an ended export and its file now",
        parameters=[OpenApiParameter("reason", str, description="Kept with who and when; at most 200 characters.")],
        responses={204: OpenApiResponse(description="Deleted."), **shapes.refusals(400, 404, 406, 409, 410, 503)},
    )
    def delete(self, request: Request, task_id: str) -> HttpResponse:
        query = bodies.validated(bodies.DeleteQuery, request.query_params.dict())
        view = service.delete(known_form(task_id), principal=principal_of(request), reason=query["reason"])
        audit.record(request, "delete", task_id=task_id, trace_id=view.trace_id, result="deleted")
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
    principal = principal_of(request)
    return ExportRequest(
        kind=service.default_kind(),
        owner=principal.owner,
        request_id=body["requestId"],
        first_day=body["from"],
        last_day=body["to"],
        format=body["format"],
        masked=service.must_mask(principal),
    )


def _download_url(request: Request, view: TaskView) -> str:
    query = links.sign(view.task_id, principal=principal_of(request), epoch=view.epoch, now_s=time.time())
    return f"{reverse('download', kwargs={'task_id': view.task_id})}?{query}"


def _conditional(request: Request, body: bytes) -> HttpResponse:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if matches(request.META.get("HTTP_IF_NONE_MATCH", ""), etag):
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(body, content_type="application/json")
        response["Content-Language"] = language_of(request).value
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    return response


def matches(if_none_match: str, etag: str) -> bool:
    """Weak comparison, as RFC 9110 asks: a proxy that compresses weakens the tag on its way."""
    tags = parse_etags(if_none_match)
    return tags == ["*"] or etag in (tag.removeprefix("W/") for tag in tags)
