"""Bodies: small, JSON, and without double meaning."""

import json
from collections.abc import Mapping
from typing import IO, Any, Never

from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser

from exports.api.problems import BodyTooLarge, InvalidBody

BODY_LIMIT = 8192
"""Bytes. The longest valid body has fewer than 2,000."""


class StrictJson(BaseParser):
    """One JSON object in UTF-8: no repeated keys, no NaN, at most `BODY_LIMIT` bytes.

    Raises: BodyTooLarge, InvalidBody, UnsupportedMediaType (another charset, or compressed).
    """

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        _check_coding(media_type or "", (parser_context or {})["request"].headers.get("Content-Encoding", ""))
        data: bytes = stream.read(BODY_LIMIT + 1)
        if len(data) > BODY_LIMIT:
            raise BodyTooLarge(BODY_LIMIT)
        return load_object(data)


def load_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data.decode(), object_pairs_hook=_unrepeated, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InvalidBody from error
    if not isinstance(value, dict):
        raise InvalidBody
    return value


def _check_coding(media_type: str, content_encoding: str) -> None:
    _, _, parameters = media_type.lower().partition("charset=")
    charset = parameters.partition(";")[0].strip(' "')
    if charset not in ("", "utf-8", "utf8") or content_encoding.strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType(media_type)


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise InvalidBody
    return value


def _refuse(name: str) -> Never:
    raise InvalidBody(name)
