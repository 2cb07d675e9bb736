"""Refusals as problem details (RFC 9457), in the caller's language."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from rest_framework import exceptions

from exports.api.representation import represent
from exports.api.slots import Busy
from exports.errors import (
    FieldInvalid,
    LimitReached,
    RequestRefused,
    SourceUnavailable,
    StateUnavailable,
    StoreUnavailable,
)
from exports.messages import PROBLEMS, Language, choose_language, reason_text
from exports.telemetry import spans
from exports.telemetry.logs import events
from exports.views import TaskView

CONTENT_TYPE = "application/problem+json"
RETRY_AFTER_S = 5

_log = events(__name__)


class NotFound(RequestRefused):
    code = "not_found"


class InvalidBody(RequestRefused):
    code = "invalid_body"


class BodyTooLarge(RequestRefused):
    code = "body_too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} bytes", limit=limit)


class LoopbackOnly(RequestRefused):
    code = "loopback_only"


class LinkInvalid(RequestRefused):
    code = "link_invalid"


class LinkExpired(RequestRefused):
    code = "link_expired"


class LinkOutdated(RequestRefused):
    code = "link_outdated"


class RangeNotSatisfiable(RequestRefused):
    code = "range_not_satisfiable"

    def __init__(self, size: int) -> None:
        super().__init__(f"the file has {size} bytes", size=size)
        self.size = size


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """A refusal before it is put into words. facts: what its sentence names. running: the task that must end first."""

    code: str
    facts: Mapping[str, object] = dataclasses.field(default_factory=dict)
    reasons: Mapping[str, str] = dataclasses.field(default_factory=dict)
    running: TaskView | None = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def status(self) -> int:
        return PROBLEMS[self.code].status


_FRAMEWORK: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.NotAuthenticated, "not_authenticated"),
    (exceptions.AuthenticationFailed, "authentication_failed"),
    (exceptions.PermissionDenied, "permission_denied"),
    (DjangoPermissionDenied, "permission_denied"),
    (exceptions.NotFound, "not_found"),
    (Http404, "not_found"),
    (exceptions.MethodNotAllowed, "method_not_allowed"),
    (exceptions.NotAcceptable, "not_acceptable"),
    (exceptions.UnsupportedMediaType, "unsupported_media_type"),
    (exceptions.ParseError, "invalid_body"),
)


def describe(error: Exception) -> Problem | None:
    """The problem that an exception stands for; None for one that nobody expected."""
    match error:
        case FieldInvalid():
            return Problem(error.code, error.facts, reasons=error.reasons)
        case LimitReached():
            wait = {"Retry-After": str(error.retry_after_s)}
            return Problem(error.code, error.facts, running=error.running, headers=wait)
        case RangeNotSatisfiable():
            return Problem(error.code, error.facts, headers={"Content-Range": f"bytes */{error.size}"})
        case Busy():
            return Problem(error.code, headers={"Retry-After": str(RETRY_AFTER_S)})
        case RequestRefused():
            return Problem(error.code, error.facts)
        case SourceUnavailable():
            return Problem("orders_unavailable", headers={"Retry-After": str(RETRY_AFTER_S)})
        case StateUnavailable() | StoreUnavailable():
            return Problem(error.code, headers={"Retry-After": str(RETRY_AFTER_S)})
    code = next((code for kind, code in _FRAMEWORK if isinstance(error, kind)), None)
    return Problem(code, headers=_authenticate_header(error)) if code else None


def _authenticate_header(error: Exception) -> dict[str, str]:
    header = getattr(error, "auth_header", None)
    return {"WWW-Authenticate": header} if header else {}


def respond(problem: Problem, *, language: Language) -> HttpResponse:
    """The answer. Its bytes depend on problem and language only, so that unknown and foreign tasks look alike."""
    text = PROBLEMS[problem.code]
    reasons = {field: reason_text(reason, language) for field, reason in problem.reasons.items()}
    facts = {**problem.facts, **({"reason": next(iter(reasons.values()))} if reasons else {})}
    body: dict[str, object] = {
        "type": f"urn:problem-type:exports:{problem.code}",
        "title": text.title.say(language),
        "status": problem.status,
        "detail": text.detail.say(language, **facts),
        "code": problem.code,
    }
    if reasons:
        body["field"] = next(iter(reasons))
        body["errors"] = [{"field": field, "reason": reason} for field, reason in reasons.items()]
    if problem.running:
        body["running"] = represent(problem.running, language=language, download_url=None)
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
        problem = Problem("internal")
    elif problem.status in (401, 403, 429, 503):
        _log.warning(
            "api.refused", method=request.method, route=_route(request), status=problem.status, code=problem.code
        )
    if problem.status >= 500:
        spans.failed(problem.code)
    return respond(problem, language=language_of(request))


def language_of(request: HttpRequest) -> Language:
    return choose_language(request.META.get("HTTP_ACCEPT_LANGUAGE", ""))


def _route(request: HttpRequest) -> str:
    match = request.resolver_match
    return match.route if match else ""


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django passes it by name
    """`handler400` of the root URLconf."""
    return respond(Problem("bad_request"), language=language_of(request))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  Django passes it by name
    """`handler404` of the root URLconf."""
    return respond(Problem("not_found"), language=language_of(request))


def server_error(request: HttpRequest) -> HttpResponse:
    """`handler500` of the root URLconf."""
    return respond(Problem("internal"), language=language_of(request))
