"""The file of a task, and its manifest. The file: whole or one range, by link or by identity; from here, or by way of a link of the store."""

import base64
from collections.abc import Generator, Iterator
from typing import ClassVar
from urllib.parse import quote

from django.http import HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request

from exports import service
from exports.api import audit, links, shapes, slots
from exports.api.base import ApiView, principal_of
from exports.api.problems import LinkOutdated
from exports.api.ranges import Span, parse_range
from exports.api.rendering import AnyMediaType
from exports.api.tasks import known_form, matches
from exports.contracts import Right


class Download(ApiView):
    """The whole file or one range of it."""

    authentication_classes = (links.LinkOrIdentity,)
    content_negotiation_class = AnyMediaType
    rights: ClassVar = {"GET": (Right.VIEW, Right.OPS_READ), "HEAD": (Right.VIEW, Right.OPS_READ)}

    @extend_schema(
        operation_id="download",
        summary="The file of an export",
        parameters=[
            OpenApiParameter(
                links.PARAMETER, str, description="The signature in `downloadUrl`; stands in for credentials."
            ),
            OpenApiParameter("Range", str, OpenApiParameter.HEADER, description="One range of bytes."),
            OpenApiParameter("If-Range", str, OpenApiParameter.HEADER),
            OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER),
        ],
        responses={
            (200, "application/octet-stream"): OpenApiTypes.BINARY,
            (206, "application/octet-stream"): OpenApiTypes.BINARY,
            302: OpenApiResponse(
                description="The file lies in an object store: `Location` serves it for a minute, and needs no credentials."
            ),
            304: OpenApiResponse(description="Not changed since the ETag that was sent."),
            **shapes.refusals(404, 409, 410, 416, 503),
        },
    )
    def get(self, request: Request, task_id: str) -> HttpResponseBase:
        artifact = _open(request, task_id)
        etag = f'"{artifact.sha256}"'
        if matches(request.META.get("HTTP_IF_NONE_MATCH", ""), etag):
            return _with_headers(HttpResponse(status=304), artifact)
        span = _asked(request, artifact, etag=etag)
        offset = span.offset if span else 0
        result = f"bytes {offset}-{offset + span.length - 1}" if span else "whole file"
        facts = {"epoch": artifact.epoch, "offset": offset}
        link = artifact.link(disposition(artifact.file_name))
        if link is not None:
            response: HttpResponseBase = _private(HttpResponseRedirect(link))
        else:
            response = _with_headers(_answer(artifact, span), artifact)
        audit.record(request, "download", task_id=task_id, trace_id=artifact.trace_id, result=result, **facts)
        return response

    @extend_schema(exclude=True)
    def head(self, request: Request, task_id: str) -> HttpResponseBase:
        """The headers of the whole file: a range is defined for GET only."""
        artifact = _open(request, task_id)
        response = HttpResponse(content_type=artifact.content_type)
        response["Content-Length"] = str(artifact.size)
        return _with_headers(response, artifact)


class Manifest(ApiView):
    """What the file promises, what it holds and where: shards, windows, rows, digests. No cell of any row but keys."""

    rights: ClassVar = {"GET": (Right.VIEW, Right.OPS_READ), "HEAD": (Right.VIEW, Right.OPS_READ)}

    @extend_schema(
        operation_id="manifest",
        summary="The manifest of an export's file",
        responses={200: OpenApiTypes.OBJECT, **shapes.refusals(404, 406, 409, 410, 503)},
    )
    def get(self, request: Request, task_id: str) -> HttpResponse:
        proof = service.read_manifest(known_form(task_id), principal=principal_of(request))
        return HttpResponse(proof, content_type="application/json")


def _open(request: Request, task_id: str) -> service.Artifact:
    artifact = service.open_file(known_form(task_id), principal=principal_of(request))
    if isinstance(request.auth, links.Link) and request.auth.epoch != artifact.epoch:
        raise LinkOutdated
    return artifact


def _asked(request: Request, artifact: service.Artifact, *, etag: str) -> Span | None:
    header = request.META.get("HTTP_RANGE", "")
    condition = request.META.get("HTTP_IF_RANGE", etag).strip()
    return parse_range(header, size=artifact.size) if header and condition == etag else None


def _answer(artifact: service.Artifact, span: Span | None) -> HttpResponseBase:
    part = span or Span(0, artifact.size)
    response = StreamingHttpResponse(
        slots.Held(_begun(artifact.read(part.offset, part.length))),
        status=206 if span else 200,
        content_type=artifact.content_type,
    )
    response["Content-Length"] = str(part.length)
    if span:
        response["Content-Range"] = span.content_range(artifact.size)
    return response


def _begun(chunks: Iterator[bytes]) -> Generator[bytes, None, None]:
    """The same chunks, the first one read already: a store that is away is told while a status can still tell it."""
    first = next(chunks, b"")
    return _resumed(first, chunks)


def _resumed(first: bytes, chunks: Iterator[bytes]) -> Generator[bytes, None, None]:
    yield first
    yield from chunks


def _with_headers(response: HttpResponseBase, artifact: service.Artifact) -> HttpResponseBase:
    digest = base64.b64encode(bytes.fromhex(artifact.sha256)).decode()
    response["ETag"] = f'"{artifact.sha256}"'
    response["Accept-Ranges"] = "bytes"
    response["Content-Disposition"] = disposition(artifact.file_name)
    response["Repr-Digest"] = f"sha-256=:{digest}:"  # of the whole file, also on a range: RFC 9530, section 3
    return _private(response)


def _private(response: HttpResponseBase) -> HttpResponseBase:
    response["Cache-Control"] = "private, no-store"
    response["Referrer-Policy"] = "no-referrer"
    return response


def disposition(file_name: str) -> str:
    """`Content-Disposition` with an ASCII name for old programs and the true one (RFC 6266, RFC 8187)."""
    plain = "".join(sign for sign in file_name if sign.isascii() and sign.isprintable() and sign not in '"\\/%')
    ascii_name = plain if plain == file_name else f"export_{plain.lstrip('_ ')}"
    header = f'attachment; filename="{ascii_name}"'
    return header if plain == file_name else f"{header}; filename*=UTF-8''{quote(file_name, safe='')}"
