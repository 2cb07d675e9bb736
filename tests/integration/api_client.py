"""Fixtures of the API's tests: callers with tokens, and a world of tasks."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.http.response import HttpResponseBase
from django.test import Client, override_settings

from exports.api import slots
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.integration.api_world import World, stub_broker

EXPORTS = "/api/orders/export"
RIGHTS = {
    "alice": ["export.submit", "export.view"],
    "bob": ["export.submit", "export.view"],
    "viewer": ["export.view"],
    "ops": ["ops.read", "ops.act"],
}
BODY = {"requestId": "r-1", "from": "2026-09-13", "to": "2026-09-15", "format": "csv"}


def token_of(owner: str) -> str:
    return f"token-of-{owner}-with-128-random-bits"


def entry(owner: str) -> dict[str, Any]:
    return {"owner": owner, "sha256": hashlib.sha256(token_of(owner).encode()).hexdigest(), "rights": RIGHTS[owner]}


def caller(owner: str, **headers: str) -> Client:
    return Client(headers={"authorization": f"Bearer {token_of(owner)}", **headers})


def submit(client: Client, **changes: Any) -> Any:
    return client.post(EXPORTS, json.dumps({**BODY, **changes}), content_type="application/json")


def body_of(response: HttpResponseBase) -> bytes:
    """All bytes of an answer, streamed or not."""
    return b"".join(response.streaming_content) if response.streaming else response.content  # type: ignore[attr-defined]


@pytest.fixture
def tokens() -> Iterator[None]:
    # Django's test client closes only what is read to its end.
    slots._taken.clear()
    urls = override_settings(ROOT_URLCONF="exports.api.urls")
    with urls, exports_settings(auth="token", tokens=tuple(entry(owner) for owner in RIGHTS)):
        yield


@pytest.fixture
def world(tokens: None, redis_db: "redis.Redis", sqlite_orders: OrdersDatabase, tmp_path: Path) -> Iterator[World]:
    folders = exports_settings(spool_dir=tmp_path / "spool", store_dir=tmp_path / "files")
    with stub_broker(), folders:
        yield World(redis_db, sqlite_orders)


@pytest.fixture
def alice() -> Client:
    return caller("alice")


@pytest.fixture
def bob() -> Client:
    return caller("bob")
