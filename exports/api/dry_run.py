"""The dry run: what an export would be, for a caller that has not decided yet."""

from typing import ClassVar

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from exports import service
from exports.api import base, bodies, shapes, slots
from exports.api.base import ApiView, language_of
from exports.api.rendering import json_response
from exports.api.tasks import wanted_export
from exports.contracts import Right
from exports.messages import ISSUES, Language
from exports.pipeline.estimate import Estimate


class Validate(ApiView):
    """Nothing is made or kept. The numbers are those of the moment, and no promise."""

    rights: ClassVar = {"POST": (Right.SUBMIT,)}

    @extend_schema(
        operation_id="validate",
        summary="What an export would be, without making it",
        parameters=[shapes.LANGUAGE],
        request=shapes.DryRunRequest,
        responses={200: shapes.DryRun, **shapes.refusals(400, 406, 413, 415, 422, 503)},
    )
    def post(self, request: Request) -> HttpResponse:
        body = bodies.validated(bodies.DryRunBody, base.body_of(request))
        wanted = wanted_export(request, body, request_id="dry-run")
        slot = slots.take()
        if slot is None:
            raise slots.Busy
        try:
            found = service.estimate(wanted)
        finally:
            slot.release()
        return json_response(_body(found, language=language_of(request)))


def _body(found: Estimate, *, language: Language) -> dict[str, object]:
    return {
        "ok": "row_limit" not in found.issues,
        "rows": found.rows,
        "shards": [{"shardId": shard_id, "rows": rows} for shard_id, rows in found.preview.rows.items()],
        "suggestedQueue": found.queue,
        "sheets": found.sheets,
        "bytes": {"low": found.size.low, "high": found.size.high},
        "seconds": {"low": found.seconds.low, "high": found.seconds.high},
        "issues": [{"code": code, "message": ISSUES[code].say(language)} for code in found.issues],
    }
