"""What every address of the API shares: default deny, JSON in and out, problem details, safe headers."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from drf_spectacular.openapi import AutoSchema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from exports.api import problems
from exports.api.identity import Identity
from exports.api.parsing import StrictJson
from exports.api.permissions import HasRight
from exports.contracts import Principal, Right
from exports.messages import Language

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
    http_method_names = ["get", "head", "post"]  # noqa: RUF012  declared so by Django
    schema = AutoSchema()
    rights: ClassVar[Mapping[str, Sequence[Right]]] = {}

    def get_exception_handler(self) -> Any:
        return problems.handle

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        _secure(answer)
        return answer


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
