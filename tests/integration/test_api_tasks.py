"""Reading, listing, cancelling and rerunning tasks over HTTP."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from ulid import ULID

from exports.contracts import State
from exports.state.store import store
from tests.conftest import exports_settings
from tests.integration.api_client import EXPORTS, alice, bob, caller, submit, tokens, world  # noqa: F401
from tests.integration.api_world import TRACEPARENT, World, succeeded

FROZEN = ["taskId", "state", "phase", "processed", "total", "startedAt", "finishedAt", "error", "downloadUrl"]
UNKNOWN = f"exp_{ULID()}"
FOREVER = "exp_7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
"""The last ULID: its time lies beyond the calendar."""


@pytest.fixture
def task_id(world: World, alice: Client) -> str:
    text: str = submit(alice).json()["taskId"]
    return text


def read(client: Client, task_id: str, **headers: str) -> Any:
    return client.get(f"{EXPORTS}/{task_id}", headers=headers)


def test_a_queued_task_has_all_nine_frozen_fields_first(task_id: str, alice: Client) -> None:
    response = read(alice, task_id)
    assert response["Content-Type"] == "application/json"
    body = response.json()
    assert list(body)[:9] == FROZEN
    assert {name: body[name] for name in FROZEN} == {
        "taskId": task_id, "state": "queued", "phase": None, "processed": 0, "total": None,
        "startedAt": None, "finishedAt": None, "error": None, "downloadUrl": None,
    }  # fmt: skip


def test_a_running_task_shows_its_phase_and_total(world: World, task_id: str, alice: Client) -> None:
    world.begin(task_id)
    body = read(alice, task_id).json()
    assert (body["state"], body["phase"], body["processed"], body["total"]) == ("running", "fetch", 0, 30)
    assert body["startedAt"].endswith("Z") and len(body["startedAt"]) == 20
    assert body["shards"] == {"total": 3, "done": 0, "running": 1}


def test_a_succeeded_task_shows_its_file(world: World, task_id: str, alice: Client) -> None:
    world.run(task_id)
    body = read(alice, task_id).json()
    assert (body["state"], body["processed"], body["total"], body["error"]) == ("succeeded", 30, 30, None)
    assert body["fileName"] == "订单_2026-09-13_2026-09-15.csv"
    assert body["fileSize"] == world.file(task_id).stat().st_size
    assert body["drift"] == {"kind": "exact", "difference": 0}
    assert (body["warnings"], body["errorCode"], body["errorDetail"]) == ([], None, None)
    assert body["downloadUrl"].startswith(f"{EXPORTS}/{task_id}/download?link=")


def test_an_empty_export_has_a_file_too(world: World, alice: Client) -> None:
    """H060"""
    task_id = succeeded(world, alice, **{"from": "2026-01-01", "to": "2026-01-01"})
    body = read(alice, task_id).json()
    assert (body["state"], body["processed"], body["total"]) == ("succeeded", 0, 0)
    assert alice.get(body["downloadUrl"]).status_code == 200


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "fetch failed on 2026-09-13, page 1: database timeout, 1 attempt."),
        ("zh-CN,zh;q=0.9", "读取 2026-09-13 第 1 页失败：数据库超时，共尝试 1 次。"),
    ],
)
def test_a_failed_task_says_where_and_why(
    world: World, task_id: str, alice: Client, language: str, sentence: str
) -> None:
    world.fail(task_id)
    response = read(alice, task_id, **{"accept-language": language})
    body = response.json()
    assert (body["state"], body["error"], body["errorCode"]) == ("failed", sentence, "database_timeout")
    assert body["errorDetail"] == {
        "phase": "fetch", "shardId": "2026-09-13", "page": 1, "cursor": None, "attempts": 1, "retryable": True,
    }  # fmt: skip
    assert response["Content-Language"] == language[:2]
    assert "Accept-Language" in response["Vary"]
    assert body["downloadUrl"] is None


def test_the_trace_of_the_submit_is_shown(world: World) -> None:
    task_id = submit(caller("alice", traceparent=TRACEPARENT)).json()["taskId"]
    assert read(caller("alice"), task_id).json()["traceId"] == "4bf92f3577b34da6a3ce929d0e0e4736"


def test_an_unchanged_task_is_304(world: World, task_id: str, alice: Client) -> None:
    first = read(alice, task_id)
    assert first["ETag"].startswith('"') and first["Cache-Control"] == "private, no-cache"
    for tag in (first["ETag"], f"W/{first['ETag']}", f'"other", {first["ETag"]}', "*"):
        again = read(alice, task_id, **{"if-none-match": tag})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    world.begin(task_id)
    assert read(alice, task_id, **{"if-none-match": first["ETag"]}).status_code == 200


def test_the_etag_differs_by_language(world: World, task_id: str, alice: Client) -> None:
    world.fail(task_id)
    assert read(alice, task_id, **{"accept-language": "en"})["ETag"] != read(alice, task_id)["ETag"]


def test_head_has_the_headers_of_get(task_id: str, alice: Client) -> None:
    response = alice.head(f"{EXPORTS}/{task_id}")
    assert (response.status_code, response.content, response["ETag"]) == (200, b"", read(alice, task_id)["ETag"])


@pytest.mark.parametrize("path", ["", "/cancel", "/rerun", "/download"])
def test_a_foreign_task_looks_like_an_unknown_one(world: World, task_id: str, bob: Client, path: str) -> None:
    """H114"""
    world.fail(task_id)
    before = world.dump()
    method = "POST" if path in ("/cancel", "/rerun") else "GET"
    answers = [
        bob.generic(method, f"{EXPORTS}/{name}{path}", headers={"accept-language": language})
        for language in ("zh", "en")
        for name in (task_id, UNKNOWN, FOREVER, "exp_x", "x' or 1=1", "*")
    ]
    assert {answer.status_code for answer in answers} == {404}
    assert len({answer.content for answer in answers[:6]}) == len({answer.content for answer in answers[6:]}) == 1
    assert len({json.dumps(sorted(answer.headers.items())) for answer in answers[:6]}) == 1
    assert answers[0].json()["code"] == "task_not_found"
    assert world.dump() == before


def test_a_task_older_than_the_retention_is_gone(world: World, alice: Client) -> None:
    old = f"exp_{ULID.from_datetime(datetime.now(UTC) - timedelta(days=8))}"
    response = read(alice, old)
    assert (response.status_code, response.json()["code"]) == (410, "task_gone")


def test_an_operator_reads_and_cancels_every_task(world: World, task_id: str) -> None:
    assert read(caller("ops"), task_id).status_code == 200
    assert caller("ops").post(f"{EXPORTS}/{task_id}/cancel").json()["state"] == "cancelled"


def test_redis_away_is_503(task_id: str, alice: Client) -> None:
    with exports_settings(redis_url="redis://127.0.0.1:1/0"):
        response = read(alice, task_id)
    assert (response.status_code, response["Retry-After"], response.json()["code"]) == (503, "5", "state_unavailable")


def test_cancel_ends_a_queued_task_with_202_then_200(task_id: str, alice: Client) -> None:
    """H076"""
    answers = [alice.post(f"{EXPORTS}/{task_id}/cancel") for _ in range(3)]
    assert [(answer.status_code, answer.json()["state"]) for answer in answers] == [
        (202, "cancelled"), (200, "cancelled"), (200, "cancelled"),
    ]  # fmt: skip


def test_cancel_of_a_running_task_is_accepted_and_shown(world: World, task_id: str, alice: Client) -> None:
    claim = world.begin(task_id)
    answer = alice.post(f"{EXPORTS}/{task_id}/cancel")
    assert (answer.status_code, answer.json()["state"], answer.json()["cancelRequested"]) == (202, "running", True)
    store().release(claim)
    assert read(alice, task_id).json()["state"] == "cancelled"


def test_cancel_of_a_failed_task_gives_up(world: World, task_id: str, alice: Client) -> None:
    world.fail(task_id)
    answer = alice.post(f"{EXPORTS}/{task_id}/cancel")
    assert (answer.status_code, answer.json()["state"], answer.json()["error"]) == (202, "cancelled", None)


def test_cancel_of_a_succeeded_task_is_a_conflict(world: World, task_id: str, alice: Client) -> None:
    world.run(task_id)
    before = world.dump()
    answer = alice.post(f"{EXPORTS}/{task_id}/cancel", headers={"accept-language": "en"})
    assert (answer.status_code, answer.json()["code"]) == (409, "cannot_cancel")
    assert answer.json()["detail"] == "The task is succeeded and cannot be cancelled."
    assert world.dump() == before


@pytest.mark.parametrize("body", ["", "{}", '{"fromScratch": false}', '{"fromScratch": true}'])
def test_rerun_queues_a_failed_task_again(world: World, task_id: str, alice: Client, body: str) -> None:
    world.fail(task_id)
    answer = alice.post(f"{EXPORTS}/{task_id}/rerun", body, content_type="application/json")
    assert (answer.status_code, answer.json()["state"], answer.json()["error"]) == (202, "queued", None)
    assert world.read(task_id).epoch == 2


def test_rerun_of_a_task_that_has_not_failed_is_a_conflict(world: World, task_id: str, alice: Client) -> None:
    before = world.dump()
    answer = alice.generic("POST", f"{EXPORTS}/{task_id}/rerun")
    assert (answer.status_code, answer.json()["code"]) == (409, "cannot_rerun")
    assert world.dump() == before


def test_rerun_after_a_change_of_specification_must_start_from_scratch(
    world: World, task_id: str, alice: Client
) -> None:
    world.fail(task_id)
    with exports_settings(delimiter=";"):
        answer = alice.generic("POST", f"{EXPORTS}/{task_id}/rerun")
        assert (answer.status_code, answer.json()["code"]) == (409, "specification_changed")
        again = alice.post(f"{EXPORTS}/{task_id}/rerun", '{"fromScratch": true}', content_type="application/json")
        assert again.status_code == 202


@pytest.mark.parametrize("value", ["yes", 1, None, []])
def test_a_wrong_from_scratch_is_named(world: World, task_id: str, alice: Client, value: Any) -> None:
    world.fail(task_id)
    answer = alice.post(
        f"{EXPORTS}/{task_id}/rerun", json.dumps({"fromScratch": value}), content_type="application/json"
    )
    assert (answer.status_code, answer.json()["field"]) == (400, "fromScratch")
    assert world.read(task_id).state is State.FAILED


def test_the_list_shows_ones_own_tasks_newest_first(world: World, alice: Client, bob: Client) -> None:
    made = [submit(alice, requestId=f"r-{number}").json()["taskId"] for number in range(3)]
    submit(bob)
    body = alice.get(EXPORTS).json()
    assert ([task["taskId"] for task in body["tasks"]], body["next"]) == (made[::-1], None)
    assert body["tasks"][0] == read(alice, made[2]).json()


def test_the_list_is_paged_by_task_id(world: World, alice: Client) -> None:
    made = [submit(alice, requestId=f"r-{number}").json()["taskId"] for number in range(3)]
    first = alice.get(EXPORTS, {"limit": 2}).json()
    assert ([task["taskId"] for task in first["tasks"]], first["next"]) == ([made[2], made[1]], made[1])
    second = alice.get(EXPORTS, {"limit": 2, "before": first["next"]}).json()
    assert ([task["taskId"] for task in second["tasks"]], second["next"]) == ([made[0]], None)


def test_the_list_is_filtered_by_state(world: World, alice: Client) -> None:
    made = [submit(alice, requestId=f"r-{number}").json()["taskId"] for number in range(2)]
    alice.post(f"{EXPORTS}/{made[0]}/cancel")
    assert [task["taskId"] for task in alice.get(EXPORTS, {"state": "cancelled"}).json()["tasks"]] == [made[0]]


@pytest.mark.parametrize(
    ("field", "value"), [("state", "done"), ("state", ""), ("limit", "0"), ("limit", "101"), ("limit", "x"), ("limit", "-1"), ("before", "x")]
)  # fmt: skip
def test_a_wrong_query_is_named(world: World, alice: Client, field: str, value: str) -> None:
    response = alice.get(EXPORTS, {field: value})
    assert (response.status_code, response.json()["field"]) == (400, field)
