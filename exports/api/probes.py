"""Addresses for machines: probes, metrics, the schema; and the one for everything that does not exist."""

from typing import Any, ClassVar

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from rest_framework.permissions import AllowAny
from rest_framework.request import Request

from exports import service
from exports.api import shapes
from exports.api.base import ApiView
from exports.api.metrics import exposition
from exports.api.permissions import IsKnown
from exports.api.problems import NotFound
from exports.api.rendering import AnyMediaType, json_response
from exports.contracts import Right


class Healthz(ApiView):
    """The process answers."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    content_negotiation_class = AnyMediaType

    @extend_schema(operation_id="healthz", summary="The process answers", auth=[], responses={200: shapes.Health})
    def get(self, request: Request) -> HttpResponse:
        return json_response({"status": "ok"})


class Readyz(ApiView):
    """The process can work: its state is reachable."""

    authentication_classes = ()
    permission_classes = (AllowAny,)
    content_negotiation_class = AnyMediaType

    @extend_schema(
        operation_id="readyz",
        summary="The service can work",
        auth=[],
        responses={200: shapes.Health, **shapes.refusals(503, closed=False)},
    )
    def get(self, request: Request) -> HttpResponse:
        service.ping()
        return json_response({"status": "ok"})


class Metrics(ApiView):
    """Of all owners; needs `ops.read`."""

    content_negotiation_class = AnyMediaType
    rights: ClassVar = {"GET": (Right.OPS_READ,), "HEAD": (Right.OPS_READ,)}

    @extend_schema(
        operation_id="metrics",
        summary="Metrics, for Prometheus",
        responses={(200, "text/plain"): OpenApiTypes.STR, **shapes.refusals(503)},
    )
    def get(self, request: Request) -> HttpResponse:
        return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)


class Schema(ApiView, SpectacularAPIView):
    """The OpenAPI document, for every known caller."""

    permission_classes = (IsKnown,)
    renderer_classes = SpectacularAPIView.renderer_classes


class Unknown(ApiView):
    """Any other address under `/api/`, by any method: known callers get 404, others 401."""

    permission_classes = (IsKnown,)
    content_negotiation_class = AnyMediaType

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        raise NotFound
