"""Refusals as problem details (RFC 9457), in the caller's language."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import exceptions

from exports.errors import (
    ExportError,
    FieldInvalid,
    RequestRefused,
    StateConflict,
    StateUnavailable,
    StoreUnavailable,
    WindowTooLong,
)
from exports.messages import PROBLEMS, Language, choose_language, reason_text
from exports.telemetry.logs import events

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_S = 5

_log = events(__name__)


class NotFound(RequestRefused):
    code = "not_found"
    status = 404


class InvalidBody(RequestRefused):
    code = "invalid_body"


class BodyTooLarge(RequestRefused):
    code = "body_too_large"
    status = 413

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes")
        self.limit = limit


class LoopbackOnly(RequestRefused):
    code = "loopback_only"
    status = 403


class LinkInvalid(RequestRefused):
    code = "link_invalid"
    status = 403


class LinkExpired(RequestRefused):
    code = "link_expired"
    status = 410


class LinkOutdated(RequestRefused):
    code = "link_outdated"
    status = 410


class RangeNotSatisfiable(RequestRefused):
    code = "range_not_satisfiable"
    status = 416

    def __init__(self, size: int) -> None:
        super().__init__(f"the file has {size} bytes")
        self.size = size


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """A refusal before it is put into words. facts: what its sentence names."""

    status: int
    code: str
    facts: Mapping[str, object] = dataclasses.field(default_factory=dict)
    field: str = ""
    reason: str = ""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


_FRAMEWORK: tuple[tuple[type[Exception], int, str], ...] = (
    (exceptions.NotAuthenticated, 401, "not_authenticated"),
    (exceptions.AuthenticationFailed, 401, "authentication_failed"),
    (exceptions.PermissionDenied, 403, "permission_denied"),
    (DjangoPermissionDenied, 403, "permission_denied"),
    (exceptions.NotFound, 404, "not_found"),
    (Http404, 404, "not_found"),
    (exceptions.MethodNotAllowed, 405, "method_not_allowed"),
    (exceptions.NotAcceptable, 406, "not_acceptable"),
    (exceptions.UnsupportedMediaType, 415, "unsupported_media_type"),
    (exceptions.ParseError, 400, "invalid_body"),
)


def describe(error: Exception) -> Problem | None:
    """The problem that an exception stands for; None for one that nobody expected."""
    if isinstance(error, ExportError):
        return _describe_own(error)
    for kind, status, code in _FRAMEWORK:
        if isinstance(error, kind):
            return Problem(status, code, headers=_authenticate_header(error))
    return None


def _authenticate_header(error: Exception) -> dict[str, str]:
    header = getattr(error, "auth_header", None)
    return {"WWW-Authenticate": header} if header else {}


def _describe_own(error: ExportError) -> Problem | None:
    match error:
        case FieldInvalid():
            return Problem(error.status, error.code, field=error.field, reason=error.reason)
        case WindowTooLong():
            return Problem(error.status, error.code, {"days": error.days, "limit": error.limit})
        case StateConflict():
            return Problem(error.status, error.code, {"state": error.state})
        case BodyTooLarge():
            return Problem(error.status, error.code, {"limit": error.limit})
        case RangeNotSatisfiable():
            return Problem(
                error.status, error.code, {"size": error.size}, headers={"Content-Range": f"bytes */{error.size}"}
            )
        case RequestRefused():
            return Problem(error.status, error.code)
        case StateUnavailable() | StoreUnavailable():
            return Problem(503, error.code, headers={"Retry-After": str(RETRY_AFTER_S)})
    return None


def respond(problem: Problem, *, language: Language) -> HttpResponse:
    """The answer. Its bytes depend on problem and language only, so that unknown and foreign tasks look alike."""
    text = PROBLEMS[problem.code]
    facts = {**problem.facts, "field": problem.field, "reason": reason_text(problem.reason, language)}
    body: dict[str, object] = {
        "type": f"urn:problem-type:exports:{problem.code}",
        "title": text.title.say(language),
        "status": problem.status,
        "detail": text.detail.say(language, **facts),
        "code": problem.code,
    }
    if problem.field:
        body["field"] = problem.field
    response = HttpResponse(json.dumps(body, ensure_ascii=False), status=problem.status, content_type=CONTENT_TYPE)
    for name, value in {"Cache-Control": "no-store", "Content-Language": language.value, **problem.headers}.items():
        response[name] = value
    return response


def handle(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """The REST framework's exception handler. What nobody expected is logged with its place and answered blankly."""
    request: HttpRequest = context["request"]
    problem = describe(error)
    if problem is None:
        _log.error("api.broken", method=request.method, route=_route(request), error=error)
        problem = Problem(500, "internal")
    elif problem.status in (401, 403, 503):
        _log.warning(
            "api.refused", method=request.method, route=_route(request), status=problem.status, code=problem.code
        )
    return respond(problem, language=language_of(request))


def language_of(request: HttpRequest) -> Language:
    return choose_language(request.META.get("HTTP_ACCEPT_LANGUAGE", ""))


def _route(request: HttpRequest) -> str:
    match = request.resolver_match
    return match.route if match else ""


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django passes it by name
    """`handler400` of the root URLconf."""
    return respond(Problem(400, "bad_request"), language=language_of(request))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django passes it by name
    """`handler404` of the root URLconf."""
    return respond(Problem(404, "not_found"), language=language_of(request))


def server_error(request: HttpRequest) -> HttpResponse:
    """`handler500` of the root URLconf."""
    return respond(Problem(500, "internal"), language=language_of(request))
