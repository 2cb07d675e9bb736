"""The live server against its own schema: whatever is sent, the answer is a described one and never a defect."""

import hashlib
import json
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from exports.kinds.orders import sample
from tests import services
from tests.processes import Site, running

schemathesis = pytest.importorskip("schemathesis", reason="the package schemathesis is missing: make requirements")

ROLES: dict[str, list[str]] = {
    "owner": ["export.submit", "export.view"],
    "other-owner": ["export.submit", "export.view"],
    "ops-read": ["ops.read"],
    "ops-act": ["ops.read", "ops.act"],
}
REQUESTS = 200
SOAK_REQUESTS = 2000


schemathesis.checks.load_all_checks()
CHECKED = [
    schemathesis.checks.CHECKS.get_one(name)
    for name in (
        *("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance"),
        *("response_schema_conformance", "ignored_auth", "use_after_free"),
    )
]
"""Not whether valid data is taken: a schema cannot say that the last day follows the first."""


def token(role: str) -> str:
    return f"token-of-{role}-with-128-random-bits"


@pytest.fixture(scope="module")
def site(valkey: services.Valkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A web process without workers: tasks stay queued, and nothing else needs to move."""
    folder = tmp_path_factory.mktemp("contract")
    with closing(sqlite3.connect(folder / "orders.sqlite3")) as connection:
        for statement in sample.statements("sqlite"):
            connection.execute(statement)
    tokens = [
        {"owner": role, "sha256": hashlib.sha256(token(role).encode()).hexdigest(), "rights": rights}
        for role, rights in ROLES.items()
    ]
    made = Site(
        folder,
        valkey=valkey,
        database_url=f"sqlite:///{folder}/orders.sqlite3",
        TOKENS=json.dumps(tokens),
        STREAM_S="1",
        SUBMITS_PER_MINUTE="100000",
        QUEUED_PER_OWNER="100000",
    )
    with running(made):
        made.start_web()
        yield made


def operations(site: Site) -> list[Any]:
    headers = {"Authorization": f"Bearer {token('owner')}"}
    schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{site.port}/api/schema/", headers=headers)
    return [found.ok() for found in schema.get_all_operations()]


def seeded(site: Site) -> str:
    """The id of a new task of the role `owner`: those of other roles may have been deleted."""
    body = {"requestId": uuid.uuid4().hex, "from": "2026-09-01", "to": "2026-09-02", "format": "csv"}
    status, _, answer = site.call("POST", "/api/orders/export", body, Authorization=f"Bearer {token('owner')}")
    assert status in (200, 202), answer
    return str(json.loads(answer)["taskId"])


def send(site: Site, role: str, *, requests: int) -> None:
    chosen = operations(site)
    headers = {"Authorization": f"Bearer {token(role)}"} if role in ROLES else {}
    made = [seeded(site) for _ in range(3)]

    @settings(
        max_examples=max(1, requests),
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def act(data: st.DataObject) -> None:
        case = data.draw(data.draw(st.sampled_from(chosen)).as_strategy())
        if "task_id" in case.path_parameters and data.draw(st.booleans()):
            case.path_parameters["task_id"] = data.draw(st.sampled_from(made))
        case.call_and_validate(headers=headers, timeout=30, checks=CHECKED)

    act()


@pytest.mark.parametrize("role", ["anonymous", *ROLES])
def test_every_answer_is_described(site: Site, role: str) -> None:
    send(site, role, requests=REQUESTS)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("role", ["anonymous", *ROLES])
def test_every_answer_is_described_also_after_thousands(site: Site, role: str) -> None:
    send(site, role, requests=SOAK_REQUESTS)
