"""Who is let in: three modes of identity, rights, and no address without a rule."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from ulid import ULID

from tests.conftest import exports_settings
from tests.integration.api_client import BODY, EXPORTS, RIGHTS, alice, caller, entry, submit, token_of, tokens, world  # noqa: F401
from tests.integration.api_world import World

UNKNOWN = f"exp_{ULID()}"
OPEN = {"healthz", "readyz"}
"""Addresses that answer anybody: the probes."""

SECRET = "a-gateway-secret-of-more-than-32-characters"
GATEWAY = {"x-gateway-secret": SECRET, "x-export-owner": "alice", "x-export-rights": "export.submit, export.view"}


def addresses(patterns: list[Any], prefix: str = "/") -> Iterator[tuple[str, str]]:
    """(name, path) of every address of a URLconf, with a task id where one is wanted."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, prefix + str(pattern.pattern))
        elif isinstance(pattern, URLPattern):
            yield str(pattern.name), (prefix + str(pattern.pattern)).replace("<str:task_id>", UNKNOWN).replace("^", "")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_no_address_answers_without_credentials(world: World, method: str) -> None:
    for name, path in addresses(get_resolver().url_patterns):
        response = Client().generic(method, path)
        if name in OPEN:
            assert response.status_code == {"GET": 200, "HEAD": 200, "OPTIONS": 204}.get(method, 405), path
        else:
            assert (response.status_code, response["WWW-Authenticate"]) == (401, 'Bearer realm="exports"'), path
    assert world.task_ids() == []


def test_every_address_is_listed() -> None:
    assert {name for name, _ in addresses(get_resolver("exports.api.urls").url_patterns)} == {
        "exports", "validate", "task", "cancel", "rerun", "download", "manifest", "callbacks", "replay", "replay-failed",
        "schema", "reference", "healthz", "readyz", "metrics", "unknown",
    }  # fmt: skip


@pytest.mark.usefixtures("tokens")
@pytest.mark.parametrize(
    ("header", "code"),
    [
        (None, "not_authenticated"),
        ("Basic YTpi", "not_authenticated"),
        ("Bearer", "authentication_failed"),
        ("Bearer wrong", "authentication_failed"),
        (f"Bearer {token_of('nobody')}", "authentication_failed"),
        (f"Bearer {entry('alice')['sha256']}", "authentication_failed"),
    ],
    ids=["none", "basic", "empty", "wrong", "of nobody", "digest"],
)
def test_wrong_tokens_are_refused(header: str | None, code: str) -> None:
    response = submit(Client(headers={"authorization": header} if header else {}))
    assert (response.status_code, response.json()["code"]) == (401, code)
    assert response["Content-Type"] == "application/problem+json"


# What each caller may do: (method, path) → status with the right; 403 without it.
ACTIONS = {
    ("POST", ""): (202, {"alice"}),
    ("GET", ""): (200, {"alice", "viewer", "ops"}),
    ("GET", f"/{UNKNOWN}"): (404, {"alice", "viewer", "ops"}),
    ("GET", f"/{UNKNOWN}/download"): (404, {"alice", "viewer", "ops"}),
    ("GET", f"/{UNKNOWN}/manifest"): (404, {"alice", "viewer", "ops"}),
    ("DELETE", f"/{UNKNOWN}"): (404, {"alice", "ops"}),
    ("POST", f"/{UNKNOWN}/cancel"): (404, {"alice", "ops"}),
    ("POST", f"/{UNKNOWN}/rerun"): (404, {"alice", "ops"}),
    ("GET", f"/{UNKNOWN}/callbacks"): (404, {"alice", "viewer", "ops"}),
    ("POST", f"/{UNKNOWN}/callback/replay"): (404, {"alice", "ops"}),
    ("POST", "/callback/replay"): (400, {"alice", "ops"}),
}


@pytest.mark.parametrize("owner", sorted(set(RIGHTS) - {"bob"}))
@pytest.mark.parametrize(("method", "path"), ACTIONS, ids=lambda part: part.replace(UNKNOWN, "taskId"))
def test_a_right_opens_only_what_it_names(world: World, owner: str, method: str, path: str) -> None:
    status, allowed = ACTIONS[method, path]
    data = json.dumps(BODY) if path == "" and method == "POST" else "{}"
    response = caller(owner).generic(method, EXPORTS + path, data, content_type="application/json")
    assert response.status_code == (status if owner in allowed else 403)


def test_metrics_are_for_operators(world: World) -> None:
    assert {owner: caller(owner).get("/metrics").status_code for owner in RIGHTS} == {
        "alice": 403, "bob": 403, "viewer": 403, "ops": 200,
    }  # fmt: skip


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE"])
def test_a_known_caller_is_told_which_methods_there_are(world: World, alice: Client, method: str) -> None:
    response = alice.generic(method, EXPORTS)
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert response["Allow"] == "GET, HEAD, OPTIONS, POST"


def test_options_answers_with_the_methods_alone(world: World, alice: Client) -> None:
    response = alice.options(EXPORTS)
    assert (response.status_code, response.content, response["Allow"]) == (204, b"", "GET, HEAD, OPTIONS, POST")


@pytest.mark.parametrize(
    "path", [EXPORTS, f"{EXPORTS}/{UNKNOWN}", "/healthz", "/api/none"], ids=["list", "task", "healthz", "none"]
)
def test_every_answer_names_its_language(world: World, path: str) -> None:
    for asked, language in (("en", "en"), ("zh-Hans-CN", "zh"), ("", "zh")):
        assert caller("alice", **{"accept-language": asked}).get(path)["Content-Language"] == language


@pytest.mark.parametrize(
    "path", ["/api/", "/api/orders", "/api/orders/export/", "/api/orders/export/x/y", "/api/users"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
def test_an_unknown_address_is_a_problem(world: World, alice: Client, method: str, path: str) -> None:
    response = alice.generic(method, path)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert response["Content-Type"] == "application/problem+json"


def gateway(**headers: str) -> Client:
    return Client(headers={**GATEWAY, **headers})


def test_the_gateway_names_owner_and_rights(world: World) -> None:
    with exports_settings(auth="gateway", gateway_secret=SECRET):
        assert submit(gateway()).status_code == 202
        assert [request.owner for request in world.requests()] == ["alice"]
        assert submit(gateway(**{"x-export-rights": "export.view"})).status_code == 403
        assert submit(gateway(**{"x-export-rights": "export.everything"})).status_code == 403


def test_a_gateway_may_send_names_in_utf_8(world: World) -> None:
    with exports_settings(auth="gateway", gateway_secret=SECRET):
        assert submit(gateway(**{"x-export-owner": "张三".encode().decode("latin-1")})).status_code == 202
    assert [request.owner for request in world.requests()] == ["张三"]


@pytest.mark.parametrize(
    "headers", [{"x-gateway-secret": "wrong"}, {"x-gateway-secret": ""}, {"x-export-owner": ""}, {"x-export-owner": "a\x00"}, {"x-export-owner": "\xff"}]
)  # fmt: skip
def test_a_wrong_gateway_header_is_refused(world: World, headers: dict[str, str]) -> None:
    with exports_settings(auth="gateway", gateway_secret=SECRET):
        response = submit(gateway(**headers))
    assert (response.status_code, response["WWW-Authenticate"]) == (401, 'Gateway realm="exports"')


def test_an_empty_gateway_secret_opens_nothing(world: World) -> None:
    with exports_settings(auth="gateway", gateway_secret=""):
        assert submit(gateway(**{"x-gateway-secret": ""})).status_code == 401


def test_gateway_headers_count_for_nothing_elsewhere(world: World) -> None:
    with exports_settings(auth="token", gateway_secret=SECRET):
        assert submit(gateway()).status_code == 401
        assert submit(gateway(authorization=f"Bearer {token_of('viewer')}")).status_code == 403


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1"])
def test_without_authentication_this_machine_is_the_demo(world: World, address: str) -> None:
    with exports_settings(auth="none"):
        assert submit(Client(REMOTE_ADDR=address)).status_code == 202
    assert [request.owner for request in world.requests()] == ["demo"]


@pytest.mark.parametrize(
    "extra", [{"REMOTE_ADDR": "10.0.0.1"}, {"REMOTE_ADDR": ""}, {"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, {"HTTP_FORWARDED": "for=127.0.0.1"}]
)  # fmt: skip
def test_without_authentication_nobody_else_is_let_in(world: World, extra: dict[str, str]) -> None:
    with exports_settings(auth="none"):
        response = submit(Client(**extra))  # type: ignore[arg-type]
    assert (response.status_code, response.json()["code"]) == (403, "loopback_only")
    assert world.task_ids() == []
