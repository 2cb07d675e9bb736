"""The addresses of callbacks: what was told of a task, and telling it again."""

from typing import ClassVar

from django.http import HttpResponse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from exports import service
from exports.api import audit, base, bodies, shapes
from exports.api.base import ApiView, principal_of
from exports.api.rendering import json_response
from exports.api.tasks import known_form
from exports.callbacks import Attempt, Callback
from exports.contracts import Right
from exports.service import Replayed
from exports.views import to_second


class Callbacks(ApiView):
    """What was sent, when, and what was answered."""

    rights: ClassVar = {"GET": (Right.VIEW, Right.OPS_READ), "HEAD": (Right.VIEW, Right.OPS_READ)}

    @extend_schema(
        operation_id="callbacks",
        summary="Callbacks of an export, with every attempt",
        parameters=[shapes.LANGUAGE],
        responses={200: shapes.CallbackList, **shapes.refusals(404, 406, 410, 503)},
    )
    def get(self, request: Request, task_id: str) -> HttpResponse:
        found = service.read_callbacks(known_form(task_id), principal=principal_of(request))
        return json_response({"callbacks": [_callback(task_id, callback) for callback in found]})


class Replay(ApiView):
    """The same bytes under the same `webhook-id`, with a new timestamp."""

    rights: ClassVar = {"POST": (Right.SUBMIT, Right.OPS_ACT)}

    @extend_schema(
        operation_id="replay",
        summary="Send the callbacks of an export anew",
        parameters=[shapes.LANGUAGE],
        request=shapes.ReplayRequest,
        responses={
            202: OpenApiResponse(shapes.Replayed, description="They are due now."),
            **shapes.refusals(400, 404, 406, 409, 410, 413, 415, 503),
        },
    )
    def post(self, request: Request, task_id: str) -> HttpResponse:
        body = bodies.validated(bodies.ReplayBody, base.body_of(request))
        replayed = service.replay_callbacks(
            known_form(task_id),
            principal=principal_of(request),
            attempts=body["attempts"],
            multiplier=body["backoffMultiplier"],
            callback_id=body["callbackId"],
        )
        return _replayed(request, replayed)


class ReplayFailed(ApiView):
    """Of one's own tasks; of all with `ops.act`."""

    rights: ClassVar = {"POST": (Right.SUBMIT, Right.OPS_ACT)}

    @extend_schema(
        operation_id="replay_failed",
        summary="Send anew all callbacks that have failed since a time",
        parameters=[shapes.LANGUAGE],
        request=shapes.ReplayFailedRequest,
        responses={
            202: OpenApiResponse(shapes.Replayed, description="They are due now."),
            **shapes.refusals(400, 406, 413, 415, 503),
        },
    )
    def post(self, request: Request) -> HttpResponse:
        body = bodies.validated(bodies.ReplayFailedBody, base.body_of(request))
        replayed = service.replay_failed_callbacks(
            body["since"],
            principal=principal_of(request),
            attempts=body["attempts"],
            multiplier=body["backoffMultiplier"],
        )
        return _replayed(request, replayed)


def _replayed(request: Request, replayed: list[Replayed]) -> HttpResponse:
    for one in replayed:
        audit.record(request, "replay", task_id=one.task_id, trace_id=one.trace_id, result=one.callback_id)
    found = [{"taskId": one.task_id, "callbackId": one.callback_id} for one in replayed]
    return json_response({"replayed": found}, status=202)


def _callback(task_id: str, callback: Callback) -> dict[str, object]:
    return {
        "callbackId": callback.key.message_id(task_id),
        "event": callback.key.event.type,
        "endpoint": callback.key.endpoint,
        "epoch": callback.key.epoch,
        "state": callback.state,
        "attempts": callback.attempts,
        "replays": callback.replays,
        "createdAt": to_second(callback.kept_at),
        "nextAttemptAt": to_second(callback.next_at),
        "payload": callback.body,
        "log": [_attempt(attempt) for attempt in callback.log],
    }


def _attempt(attempt: Attempt) -> dict[str, object]:
    ended = attempt.result is not None
    return {
        "attempt": attempt.number,
        "sentAt": to_second(attempt.sent_at),
        "responseAt": to_second(attempt.response_at),
        "result": attempt.result,
        "statusCode": attempt.status or None,
        "durationMs": attempt.duration_ms if ended else None,
        "reason": attempt.reason or None,
        "responseBody": attempt.body if ended else None,
    }
