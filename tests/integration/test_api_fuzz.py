"""Whatever is sent, the answer is a defined one: never a 5xx."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.api_client import BODY, EXPORTS, caller, tokens, world  # noqa: F401
from tests.integration.api_world import World

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
DAYS = st.dates().map(str)
BODIES = st.fixed_dictionaries(
    {"requestId": st.text(max_size=300) | JSON, "from": DAYS | JSON, "to": DAYS | JSON, "format": st.sampled_from(["csv", "xlsx"]) | JSON}
) | st.dictionaries(st.sampled_from(sorted(BODY)) | st.text(max_size=5), JSON, max_size=5)  # fmt: skip
# The world is shared by all examples of a test on purpose: tasks of earlier ones must not matter.
FUZZ = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def defined(response: Any, *statuses: int) -> None:
    assert response.status_code in statuses, (response.status_code, response.content)
    if response.status_code >= 400:
        body = response.json()
        assert (body["status"], response["Content-Type"]) == (response.status_code, "application/problem+json")


@FUZZ
@given(body=BODIES)
def test_any_json_object_has_a_defined_answer(world: World, body: dict[str, Any]) -> None:
    response = caller("alice").post(EXPORTS, json.dumps(body), content_type="application/json")
    defined(response, 200, 202, 400, 409, 413, 422)


@FUZZ
@given(
    text=st.binary(max_size=200),
    media_type=st.sampled_from(["application/json", "text/plain", "", "application/json; charset=x"]),
)
def test_any_bytes_have_a_defined_answer(world: World, text: bytes, media_type: str) -> None:
    defined(caller("alice").generic("POST", EXPORTS, text, content_type=media_type), 400, 415)


@FUZZ
@given(
    name=st.sampled_from(["range", "if-range", "if-none-match", "accept", "accept-language", "idempotency-key", "traceparent", "authorization"]),
    value=st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=60),
)  # fmt: skip
def test_any_header_has_a_defined_answer(world: World, name: str, value: str) -> None:
    for method, path in (("POST", ""), ("GET", ""), ("GET", "/exp_0"), ("GET", "/exp_0/download")):
        response = caller("alice", **{name: value}).generic(
            method, EXPORTS + path, json.dumps(BODY), content_type="application/json"
        )
        defined(response, 200, 202, 400, 401, 404, 406)


@FUZZ
@given(task_id=st.text(min_size=1, max_size=40).filter(lambda text: "/" not in text), link=st.text(max_size=80))
def test_any_task_id_and_link_have_a_defined_answer(world: World, task_id: str, link: str) -> None:
    path = f"{EXPORTS}/{task_id.replace('%', '%25').replace('?', '%3F').replace('#', '%23')}"
    defined(caller("alice").get(path), 200, 404)
    defined(caller("alice").get(f"{path}/callbacks"), 200, 404)
    defined(caller("alice").get(f"{path}/download", {"link": link}), 403, 404)
