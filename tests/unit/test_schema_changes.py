"""The published schema breaks no caller of the last released one, and the comparison would see it if it did."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.schema_changes import breaking

ROOT = Path(__file__).parents[2]
RELEASED = yaml.safe_load((ROOT / "tests/golden/openapi.yaml").read_text("utf-8"))
EXPORT = "/api/orders/export"


def test_the_schema_breaks_no_caller_of_the_released_one() -> None:
    assert breaking(RELEASED, yaml.safe_load((ROOT / "docs/openapi.yaml").read_text("utf-8"))) == []


def without(path: str) -> Callable[[dict[str, Any]], object]:
    *parents, last = path.split("|")

    def act(document: dict[str, Any]) -> object:
        for name in parents:
            document = document[name]
        return document.pop(last)

    return act


def schema(document: dict[str, Any], name: str) -> Any:
    return document["components"]["schemas"][name]


BREAKS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "an operation is gone": (without(f"paths|{EXPORT}/{{task_id}}/cancel|post"), "cancel: is gone"),
    "an answer is gone": (without(f"paths|{EXPORT}|post|responses|200"), "POST /api/orders/export: 200 is gone"),
    "a media type is gone": (
        without(f"paths|{EXPORT}/{{task_id}}|get|responses|200|content|text/event-stream"),
        "text/event-stream is gone",
    ),
    "a field is gone": (without("components|schemas|Task|properties|processed"), "processed: is gone"),
    "a field has another type": (
        lambda document: schema(document, "Task")["properties"]["processed"].update(type="string"),
        "processed: type was ['integer'], is ['string']",
    ),
    "a field may be null": (
        lambda document: schema(document, "Task")["properties"]["processed"].update(type=["integer", "null"]),
        "processed: may be ['null'] now",
    ),
    "a field may be missing": (
        lambda document: schema(document, "Task")["required"].remove("state"),
        "state: may be missing now",
    ),
    "a field of the request is required": (
        lambda document: schema(document, "RerunRequestRequest").update(required=["fromScratch"]),
        "fromScratch: is required now",
    ),
    "a value is no longer taken": (
        lambda document: schema(document, "FormatEnum")["enum"].remove("csv"),
        "format: takes fewer values",
    ),
    "a parameter is gone": (
        lambda document: document["paths"][EXPORT]["get"]["parameters"].pop(
            next(i for i, item in enumerate(document["paths"][EXPORT]["get"]["parameters"]) if item["name"] == "before")
        ),
        "parameter before is gone",
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_breaking_change_is_seen(name: str) -> None:
    act, line = BREAKS[name]
    changed = copy.deepcopy(RELEASED)
    act(changed)
    found = breaking(RELEASED, changed)
    assert any(line in one for one in found), found


def test_additions_break_nobody() -> None:
    changed = copy.deepcopy(RELEASED)
    changed["paths"]["/api/orders/new"] = {"get": {"responses": {}}}
    schema(changed, "Task")["properties"]["new"] = {"type": "string"}
    schema(changed, "FormatEnum")["enum"].append("ods")
    changed["paths"][EXPORT]["get"]["parameters"].append({"in": "query", "name": "new", "schema": {"type": "string"}})
    assert breaking(RELEASED, changed) == []
