"""Callbacks at the API and in the shell: who sees them, who sends them anew, and what is answered."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from exports.pipeline import diagnosis, notify
from exports.telemetry import metrics
from tests.conftest import exports_settings
from tests.integration.api_client import EXPORTS, alice, bob, caller, submit, tokens, world  # noqa: F401
from tests.integration.api_world import World, succeeded
from tests.integration.test_api_probes import SCHEMA
from tests.integration.test_commands import run, run_json
from tests.receiver import OPEN, Receiver, receiving

FIELDS = [
    *("callbackId", "event", "endpoint", "epoch", "state", "attempts", "replays", "createdAt", "nextAttemptAt", "payload", "log"),
]  # fmt: skip


@pytest.fixture
def receiver(world: World) -> Iterator[Receiver]:
    with (
        receiving() as found,
        exports_settings(callbacks=(found.endpoint(),), callback_timeout_ms=2000, callback_delays_ms=(0, 0), **OPEN),
    ):
        yield found


@pytest.fixture
def task_id(receiver: Receiver, world: World, alice: Client) -> str:
    """A task of alice whose callback failed for good, after three attempts."""
    receiver.answers(500, 500, (503, {}, b"not today"), 200)
    found = succeeded(world, alice)
    notify.deliver_due()
    return found


def callbacks(client: Client, task_id: str) -> Any:
    return client.get(f"{EXPORTS}/{task_id}/callbacks")


def replay(client: Client, path: str, body: object = None) -> Any:
    return client.post(f"{EXPORTS}/{path}", json.dumps(body or {}), content_type="application/json")


def test_the_audit_shows_every_attempt(alice: Client, task_id: str, receiver: Receiver) -> None:
    [callback] = callbacks(alice, task_id).json()["callbacks"]
    assert list(callback) == FIELDS
    assert callback["callbackId"] == f"{task_id}-1-succeeded-shop" == receiver.received[0].id
    assert (callback["event"], callback["endpoint"], callback["epoch"]) == ("export.succeeded", "shop", 1)
    assert (callback["state"], callback["attempts"], callback["replays"]) == ("failed", 3, 0)
    assert callback["payload"].encode() == receiver.received[0].body
    assert callback["nextAttemptAt"] is None
    assert [attempt["attempt"] for attempt in callback["log"]] == [1, 2, 3]
    last = callback["log"][-1]
    assert (last["result"], last["statusCode"], last["responseBody"]) == ("refused", 503, "not today")
    assert last["sentAt"] <= last["responseAt"]
    assert last["durationMs"] >= 0
    assert receiver.url() not in json.dumps(callback)


def test_an_answer_has_the_shape_of_the_published_schema(alice: Client, task_id: str) -> None:
    document = yaml.safe_load(SCHEMA.read_text("utf-8"))
    for path, answer in (
        ("CallbackList", callbacks(alice, task_id).json()),
        ("Replayed", replay(alice, f"{task_id}/callback/replay").json()),
    ):
        jsonschema.validate(answer, {"$ref": f"#/components/schemas/{path}", "components": document["components"]})


@pytest.mark.parametrize(("owner", "status"), [("alice", 200), ("bob", 404), ("viewer", 404), ("ops", 200)])
def test_callbacks_are_seen_by_whom_sees_the_task(task_id: str, owner: str, status: int) -> None:
    assert callbacks(caller(owner), task_id).status_code == status


@pytest.mark.parametrize(("owner", "status"), [("alice", 202), ("bob", 404), ("viewer", 403), ("ops", 202)])
def test_a_replay_is_for_those_who_may_act(
    world: World, task_id: str, receiver: Receiver, owner: str, status: int
) -> None:
    before = world.dump()
    assert replay(caller(owner), f"{task_id}/callback/replay").status_code == status
    assert (world.dump() == before) == (status != 202)


def test_nobody_sees_or_replays_without_credentials(task_id: str) -> None:
    assert callbacks(Client(), task_id).status_code == 401
    for path in (f"{task_id}/callback/replay", "callback/replay"):
        assert replay(Client(), path).status_code == 401


def test_a_replay_is_sent_and_shown(alice: Client, task_id: str, receiver: Receiver) -> None:
    response = replay(alice, f"{task_id}/callback/replay", {"attempts": 3, "backoffMultiplier": 2})
    assert response.json() == {"replayed": [{"taskId": task_id, "callbackId": f"{task_id}-1-succeeded-shop"}]}
    notify.deliver_due()
    [callback] = callbacks(alice, task_id).json()["callbacks"]
    assert (callback["state"], callback["attempts"], callback["replays"]) == ("delivered", 4, 1)
    assert {received.body for received in receiver.received} == {receiver.received[0].body}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"attempts": 0}, "attempts"), ({"attempts": 11}, "attempts"), ({"attempts": "3"}, "attempts"), ({"attempts": True}, "attempts"),
        ({"attempts": 1.5}, "attempts"), ({"backoffMultiplier": 0.9}, "backoffMultiplier"), ({"backoffMultiplier": 11}, "backoffMultiplier"),
        ({"backoffMultiplier": None}, "backoffMultiplier"), ({"callbackId": "another"}, "callbackId"), ({"callbackId": 7}, "callbackId"),
    ],
)  # fmt: skip
def test_a_wrong_replay_names_its_field_and_changes_nothing(
    world: World, alice: Client, task_id: str, body: Any, field: str
) -> None:
    before = world.dump()
    response = replay(alice, f"{task_id}/callback/replay", body)
    assert (response.status_code, response.json()["field"]) == (400, field)
    assert world.dump() == before


def test_a_task_without_callbacks_is_a_conflict(alice: Client, receiver: Receiver) -> None:
    task_id = submit(alice, requestId="r-9").json()["taskId"]
    assert callbacks(alice, task_id).json() == {"callbacks": []}
    response = replay(alice, f"{task_id}/callback/replay")
    assert (response.status_code, response.json()["code"]) == (409, "no_callback")


def test_an_unknown_task_is_404(alice: Client, receiver: Receiver) -> None:
    for response in (callbacks(alice, "exp_0"), replay(alice, "exp_0/callback/replay")):
        assert (response.status_code, response.json()["code"]) == (404, "task_not_found")


def test_all_that_failed_since_a_time_is_replayed_for_its_owner(alice: Client, bob: Client, task_id: str) -> None:
    since = {"since": "2026-01-01T00:00:00Z"}
    assert replay(bob, "callback/replay", since).json() == {"replayed": []}
    assert replay(alice, "callback/replay", {"since": "2999-01-01T00:00:00Z"}).json() == {"replayed": []}
    response = replay(alice, "callback/replay", since)
    assert response.status_code == 202
    assert [one["taskId"] for one in response.json()["replayed"]] == [task_id]
    assert replay(caller("ops"), "callback/replay", since).json() == {"replayed": []}


@pytest.mark.parametrize(
    "since", [None, 7, "yesterday", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00+08:00"]
)
def test_a_time_that_is_not_in_utc_is_refused(alice: Client, receiver: Receiver, since: object) -> None:
    response = replay(alice, "callback/replay", {"since": since})
    assert (response.status_code, response.json()["field"]) == (400, "since")


def test_metrics_count_attempts_by_result_and_replays(alice: Client, task_id: str) -> None:
    replay(alice, f"{task_id}/callback/replay")
    notify.deliver_due()
    text = caller("ops").get("/metrics").content.decode()
    assert f'{metrics.CALLBACKS}{{result="refused"}} 3.0\n' in text
    assert f'{metrics.CALLBACKS}{{result="delivered"}} 1.0\n' in text
    assert f'{metrics.CALLBACKS}{{result="timeout"}} 0.0\n' in text
    assert f"{metrics.CALLBACK_REPLAYS} 1.0\n" in text


# --- the shell -------------------------------------------------------------------------------


def test_the_command_lists_replays_and_pings(task_id: str, receiver: Receiver) -> None:
    shown = run("export_callbacks", "list", task_id)
    assert shown.startswith(f"{task_id}-1-succeeded-shop  failed  3 attempts\n    1  20")
    [callback] = run_json("export_callbacks", "list", task_id)["callbacks"]
    assert [attempt["statusCode"] for attempt in callback["log"]] == [500, 500, 503]
    assert (
        run("export_callbacks", "replay-failed", "--since", "2026-01-01")
        == f"{task_id}-1-succeeded-shop is sent anew\n"
    )
    assert run("export_callbacks", "replay-failed", "--since", "2026-01-01") == "nothing to send\n"
    notify.deliver_due()
    assert run("export_callbacks", "replay", task_id, "--attempts", "1") == f"{task_id}-1-succeeded-shop is sent anew\n"
    assert run("export_callbacks", "ping", "shop").startswith("delivered: status 200, ")


def test_the_command_fails_where_the_ping_does(receiver: Receiver) -> None:
    receiver.answers(404)
    with pytest.raises(SystemExit) as left:
        run("export_callbacks", "ping", "shop")
    assert left.value.code == 1
    with pytest.raises(CommandError, match="endpoint another is not the id of an endpoint"):
        run("export_callbacks", "ping", "another")


def test_the_command_refuses_a_task_without_callbacks(alice: Client, receiver: Receiver) -> None:
    task_id = submit(alice, requestId="r-9").json()["taskId"]
    with pytest.raises(CommandError, match="no callback"):
        call_command("export_callbacks", "replay", task_id)


# --- the doctor ------------------------------------------------------------------------------


def findings() -> dict[str, tuple[str, str]]:
    return {found.name: (found.level, found.text) for found in diagnosis.diagnose()}


def test_the_doctor_says_what_is_wrong_with_callbacks(task_id: str, receiver: Receiver) -> None:
    assert findings()["callbacks"] == ("WARN", "1 endpoint, but no worker of the group notify")
    from exports.state.replies import WorkerSign
    from exports.state.store import store

    store().beat("host:w", WorkerSign("notify", busy=False, spool="", rss_mb=0))
    assert findings()["callbacks"] == ("WARN", "1 endpoint; 1 callback has failed for good in the last day")
    run("export_callbacks", "replay-failed", "--since", "2026-01-01")
    assert findings()["callbacks"] == ("OK", "1 endpoint")


def test_the_doctor_is_silent_without_endpoints(world: World) -> None:
    assert "callbacks" not in findings()
