"""What every address of the API shares: default deny, JSON in and out, problem details, safe headers."""

import io
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from drf_spectacular.openapi import AutoSchema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from exports.api import problems
from exports.api.identity import Identity
from exports.api.parsing import BODY_LIMIT, StrictJson
from exports.api.permissions import HasRight
from exports.contracts import Principal, Right
from exports.messages import Language
from exports.telemetry import spans, trace

VARY = ("Accept-Language", "Authorization")


class ApiView(APIView):
    """The classes are named here and not left to settings: a project that adopts the app keeps its own defaults."""

    authentication_classes: Any = (Identity,)
    permission_classes: Any = (HasRight,)
    parser_classes = (StrictJson,)
    renderer_classes: Any = (JSONRenderer,)
    throttle_classes = ()
    metadata_class = None
    versioning_class = None
    http_method_names = ["get", "head", "options", "post", "delete"]  # noqa: RUF012  declared so by Django
    schema = AutoSchema()
    rights: ClassVar[Mapping[str, Sequence[Right]]] = {}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        with spans.span(
            f"{request.method} {type(self).__name__}",
            parent=trace.parse_traceparent(request.headers.get("traceparent")),
        ):
            return super().dispatch(request, *args, **kwargs)

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        _take_chunked_body(request)
        return super().initialize_request(request, *args, **kwargs)

    def get_exception_handler(self) -> Any:
        return problems.handle

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        _secure(answer)
        answer.headers.setdefault("Content-Language", language_of(request).value)
        return answer

    def options(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        """Nothing but `Allow`, which every answer has."""
        return HttpResponse(status=204)


def _take_chunked_body(request: HttpRequest) -> None:
    """A body without a length is nothing to Django; take as much of it as any valid body may have.

    Source: `wsgi.input_terminated`, which gunicorn sets where the input ends by itself.
    """
    meta = request.META
    if meta.get("wsgi.input_terminated") and "chunked" in meta.get("HTTP_TRANSFER_ENCODING", "").lower():
        data = meta["wsgi.input"].read(BODY_LIMIT + 1)
        request._stream = io.BytesIO(data)  # noqa: SLF001  Django has no other way in
        meta["CONTENT_LENGTH"] = str(len(data))


def _secure(response: HttpResponseBase) -> None:
    patch_vary_headers(response, VARY)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.setdefault("X-Content-Type-Options", "nosniff")


def principal_of(request: Request) -> Principal:
    """Who asks; the permission has made sure of one."""
    assert isinstance(request.user, Principal)
    return request.user


def body_of(request: Request) -> Mapping[str, Any]:
    """The parsed body; empty where none was sent."""
    assert isinstance(request.data, dict)
    return request.data


def language_of(request: Request) -> Language:
    return problems.language_of(request._request)  # noqa: SLF001  the framework's name for Django's request
