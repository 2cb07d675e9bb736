"""The API as a page for people, out of the same document as `/api/schema/`: no script, nothing from other hosts."""

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.http import HttpResponse
from django.template import Context, Engine
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from exports.api.base import ApiView
from exports.api.permissions import IsKnown
from exports.api.rendering import AnyMediaType

_FOLDER = Path(__file__).parent / "pages"
_GENERATOR: Any = SchemaGenerator
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

Schema = Mapping[str, Any]


class Reference(ApiView):
    """For every known caller, as the schema."""

    permission_classes = (IsKnown,)
    content_negotiation_class = AnyMediaType

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        document = _GENERATOR().get_schema(request=None, public=True)
        response = HttpResponse(page(document))
        response["Content-Security-Policy"] = _POLICY
        return response


def page(document: Schema) -> str:
    """HTML of an OpenAPI document."""
    operations = list(_operations(document))
    shapes = [
        {"name": name, "fields": list(_fields(schema)), "values": schema.get("enum", ())}
        for name, schema in document["components"]["schemas"].items()
    ]
    context = {"info": document["info"], "operations": operations, "shapes": shapes}
    return str(_template().render(Context(context)))


@functools.cache
def _template() -> Any:
    return Engine(dirs=[str(_FOLDER)]).get_template("reference.html")


def _operations(document: Schema) -> Iterator[dict[str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield {
                "id": operation["operationId"],
                "method": method.upper(),
                "path": path,
                "summary": operation["summary"],
                "description": operation.get("description", ""),
                "parameters": operation.get("parameters", ()),
                "body": _body(operation.get("requestBody", {})),
                "answers": [
                    {"status": status, "description": answer["description"], "body": _body(answer)}
                    for status, answer in operation["responses"].items()
                ],
            }


def _body(part: Schema) -> list[dict[str, str]]:
    return [
        {"media_type": media_type, **_type(body.get("schema", {}))}
        for media_type, body in part.get("content", {}).items()
    ]


def _fields(schema: Schema) -> Iterator[dict[str, Any]]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        yield {
            "name": name,
            "optional": name not in required,
            "description": field.get("description", ""),
            **_type(field),
        }


def _type(schema: Schema) -> dict[str, str]:
    """text: in words. link: name of the shape it is, or a list of, or ""."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return {"text": name, "link": name}
    if "items" in schema:
        inner = _type(schema["items"])
        return {"text": f"list of {inner['text']}", "link": inner["link"]}
    parts = [_type(part) for key in ("oneOf", "anyOf", "allOf") for part in schema.get(key, ())]
    if parts:
        text = " or ".join(dict.fromkeys("null" if part["link"] == "NullEnum" else part["text"] for part in parts))
        return {"text": text, "link": next((part["link"] for part in parts if part["link"] != "NullEnum"), "")}
    names = schema.get("type", "any")
    text = names if isinstance(names, str) else " or ".join(names)
    return {"text": f"{text} ({schema['format']})" if "format" in schema else text, "link": ""}
