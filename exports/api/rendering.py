"""Answers as bytes, made in one place, so that an `ETag` is of what is sent."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.http import HttpResponse
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request


def to_json(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def json_response(value: Mapping[str, object], *, status: int = 200) -> HttpResponse:
    return HttpResponse(to_json(value), status=status, content_type="application/json")


class AnyMediaType(BaseContentNegotiation):
    """For files and metrics, which have one form: whatever `Accept` says, that form is sent."""

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""
