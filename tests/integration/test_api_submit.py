"""POST /api/orders/export: the frozen protocol, and every way to get it wrong."""

import datetime as dt
import json
from typing import Any

import pytest
from django.test import Client

from exports.telemetry.trace import parse_traceparent
from tests.conftest import exports_settings
from tests.integration.api_client import BODY, EXPORTS, alice, bob, caller, submit, tokens, world  # noqa: F401
from tests.integration.api_world import TRACEPARENT, World

pytestmark = pytest.mark.usefixtures("tokens")


def refuse(response: Any, *, status: int, code: str, field: str | None = None) -> None:
    assert response.status_code == status
    assert response["Content-Type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["code"], body.get("field")) == (status, code, field)
    assert body["type"] == f"urn:problem-type:exports:{code}"


def test_a_new_request_is_answered_with_three_fields_and_202(world: World, alice: Client) -> None:
    response = submit(alice)
    [task_id] = world.task_ids()
    assert response.status_code == 202
    assert response.json() == {"taskId": task_id, "state": "queued", "progressUrl": f"/api/orders/export/{task_id}"}
    assert response["Location"] == f"/api/orders/export/{task_id}"


def test_a_known_request_is_answered_with_200_and_the_same_task(world: World, alice: Client) -> None:
    first, second = submit(alice), submit(alice)
    assert (second.status_code, second.json()) == (200, first.json())
    assert len(world.task_ids()) == 1


def test_request_ids_are_trimmed(world: World, alice: Client) -> None:
    submit(alice, requestId="  r-1\t")
    assert [request.request_id for request in world.requests()] == ["r-1"]


def test_a_request_id_belongs_to_its_owner(world: World, alice: Client, bob: Client) -> None:
    assert submit(alice).json()["taskId"] != submit(bob).json()["taskId"]


def test_personal_data_is_masked_for_owners_without_the_right_to_it(world: World, alice: Client) -> None:
    submit(alice, requestId="open")
    with exports_settings(mask_personal=True):
        submit(alice, requestId="masked")
    assert {request.request_id: request.masked for request in world.requests()} == {"open": False, "masked": True}


def test_a_request_id_with_another_body_is_a_conflict(world: World, alice: Client) -> None:
    """H089"""
    submit(alice)
    refuse(submit(alice, format="xlsx"), status=409, code="request_conflict")
    assert len(world.task_ids()) == 1


@pytest.mark.parametrize(
    "value", ["", "   ", "x" * 256, "x" * 5000, "a\x00b", "a\nb", "\ud800", 7, None, True, ["r"], {}]
)
def test_a_wrong_request_id_is_named(world: World, alice: Client, value: Any) -> None:
    """H091"""
    refuse(submit(alice, requestId=value), status=400, code="invalid_field", field="requestId")
    assert world.task_ids() == []


def test_a_missing_request_id_is_named(world: World, alice: Client) -> None:
    body = {name: value for name, value in BODY.items() if name != "requestId"}
    refuse(
        alice.post(EXPORTS, json.dumps(body), content_type="application/json"),
        status=400,
        code="invalid_field",
        field="requestId",
    )


@pytest.mark.parametrize("value", ["x" * 255, "订单 导出", "é😀"])
def test_printable_request_ids_are_accepted(world: World, alice: Client, value: str) -> None:
    assert submit(alice, requestId=value).status_code == 202


@pytest.mark.parametrize(
    "value", ["2026-9-1", "20260901", "2026-W36-2", "2027-02-29", "2026-09-31", "2026-09-01T00:00:00", "٢٠٢٦-٠٩-٠١", "", 20260901, None, "0001-01-01", "9999-12-31"]
)  # fmt: skip
def test_a_wrong_day_is_named(world: World, alice: Client, value: Any) -> None:
    """H017"""
    refuse(submit(alice, **{"from": value}), status=400, code="invalid_field", field="from")
    assert world.task_ids() == []


def test_all_wrong_fields_are_named_the_first_one_in_field(world: World) -> None:
    response = submit(caller("alice", **{"accept-language": "en"}), **{"from": "2026-02-30", "to": 7, "format": "pdf"})
    refuse(response, status=400, code="invalid_field", field="from")
    assert response.json()["detail"] == "from must be a date that exists, as YYYY-MM-DD."
    assert response.json()["errors"] == [
        {"field": "from", "reason": "must be a date that exists, as YYYY-MM-DD"},
        {"field": "to", "reason": "must be a date that exists, as YYYY-MM-DD"},
        {"field": "format", "reason": "must be csv or xlsx"},
    ]
    assert world.task_ids() == []


def test_days_in_the_wrong_order_name_the_last_one(world: World, alice: Client) -> None:
    """H017"""
    refuse(submit(alice, **{"from": "2026-09-30", "to": "2026-09-01"}), status=400, code="invalid_field", field="to")
    assert world.task_ids() == []


def test_one_leap_day_is_a_valid_window(world: World, alice: Client) -> None:
    """H017"""
    assert submit(alice, **{"from": "2024-02-29", "to": "2024-02-29"}).status_code == 202


def test_a_day_that_has_not_come_is_accepted(world: World, alice: Client) -> None:
    """H018"""
    ahead = (dt.datetime.now(dt.UTC) + dt.timedelta(days=2)).date().isoformat()
    assert submit(alice, **{"from": ahead, "to": ahead}).status_code == 202


@pytest.mark.parametrize("value", ["CSV", "pdf", "", None, 1, ["csv"]])
def test_a_wrong_format_is_named(world: World, alice: Client, value: Any) -> None:
    refuse(submit(alice, format=value), status=400, code="invalid_field", field="format")


def test_a_window_over_the_limit_is_refused(world: World, alice: Client) -> None:
    response = submit(alice, **{"from": "2025-01-01", "to": "2026-09-30"})
    refuse(response, status=422, code="window_too_long")
    assert response.json()["detail"] == "从 from 到 to 共 638 天，最多 366 天（设置 max_days）。"


def test_unknown_fields_are_ignored(world: World, alice: Client) -> None:
    assert submit(alice, columns=["id"], owner="bob").status_code == 202
    assert [request.owner for request in world.requests()] == ["alice"]


@pytest.mark.parametrize("key", ["k-1", '"k-1"', " k-1 "])
def test_idempotency_key_stands_in_for_a_missing_request_id(world: World, alice: Client, key: str) -> None:
    body = {name: value for name, value in BODY.items() if name != "requestId"}
    alice.post(EXPORTS, json.dumps(body), content_type="application/json", headers={"idempotency-key": key})
    assert [request.request_id for request in world.requests()] == ["k-1"]


def test_idempotency_key_beside_the_same_request_id_is_accepted(world: World, alice: Client) -> None:
    assert submit(caller("alice", **{"idempotency-key": "r-1"})).status_code == 202


def test_idempotency_key_beside_another_request_id_is_refused(world: World) -> None:
    refuse(submit(caller("alice", **{"idempotency-key": "r-2"})), status=400, code="invalid_field", field="requestId")
    assert world.task_ids() == []


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b'"x"', b"null", b"[" * 8000, b'{"a": NaN}', b'{"a": -Infinity}', b"\xff\xfe", b"\xef\xbb\xbf{}",
        b'{"requestId": "a", "requestId": "b"}', b'{"x": {"a": 1, "a": 2}}', b'{"a": ' + b"9" * 5000 + b"}",
    ],
)  # fmt: skip
def test_a_body_that_is_not_one_plain_object_is_refused(world: World, alice: Client, text: bytes) -> None:
    response = alice.post(EXPORTS, text, content_type="application/json")
    assert (response.status_code, response.json()["code"]) == (400, "invalid_field" if text == b"" else "invalid_body")
    assert world.task_ids() == []


def test_a_body_over_8_kb_is_refused(world: World, alice: Client) -> None:
    text = json.dumps(BODY)
    fits, over = text + " " * (8192 - len(text)), text + " " * (8193 - len(text))
    assert alice.post(EXPORTS, fits, content_type="application/json").status_code == 202
    refuse(alice.post(EXPORTS, over, content_type="application/json"), status=413, code="body_too_large")


@pytest.mark.parametrize(
    "media_type",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=gbk",
        "nonsense",
    ],
)
def test_another_media_type_is_refused(world: World, alice: Client, media_type: str) -> None:
    refuse(
        alice.generic("POST", EXPORTS, json.dumps(BODY), content_type=media_type),
        status=415,
        code="unsupported_media_type",
    )
    assert world.task_ids() == []


def test_a_body_that_is_compressed_or_in_another_charset_is_told_what_it_must_be(world: World, alice: Client) -> None:
    packed = alice.post(
        EXPORTS, json.dumps(BODY), content_type="application/json", headers={"content-encoding": "gzip"}
    )
    other = alice.post(EXPORTS, json.dumps(BODY), content_type="application/json; charset=gbk")
    for response in (packed, other):
        refuse(response, status=415, code="unsupported_media_type")
    english = caller("alice", accept_language="en")
    told = english.post(EXPORTS, "{}", content_type="application/json", headers={"content-encoding": "br"}).json()
    assert told["detail"] == "The body must be application/json in UTF-8, and not compressed."
    assert world.task_ids() == []
    plain = alice.post(
        EXPORTS, json.dumps(BODY), content_type="application/json", headers={"content-encoding": "identity"}
    )
    assert plain.status_code == 202


def test_a_charset_of_utf_8_is_accepted(world: World, alice: Client) -> None:
    assert alice.post(EXPORTS, json.dumps(BODY), content_type="application/json; charset=UTF-8").status_code == 202


def test_a_caller_that_takes_no_json_is_refused(world: World) -> None:
    refuse(submit(caller("alice", accept="text/csv")), status=406, code="not_acceptable")
    assert world.task_ids() == []


def test_redis_away_is_503_with_retry_after(world: World, alice: Client) -> None:
    with exports_settings(redis_url="redis://127.0.0.1:1/0"):
        response = submit(alice)
    refuse(response, status=503, code="state_unavailable")
    assert response["Retry-After"] == "5"


def test_a_valid_traceparent_is_taken(world: World) -> None:
    task_id = submit(caller("alice", traceparent=TRACEPARENT)).json()["taskId"]
    assert world.read(task_id).traceparent == TRACEPARENT


def test_a_wrong_traceparent_is_replaced(world: World) -> None:
    task_id = submit(caller("alice", traceparent="00-nonsense-01")).json()["taskId"]
    assert parse_traceparent(world.read(task_id).traceparent) is not None


@pytest.mark.parametrize(
    ("language", "detail"),
    [
        ("en-GB,zh;q=0.1", "format must be csv or xlsx."),
        ("fr, zh-CN", "format：必须是 csv 或 xlsx。"),
        ("", "format：必须是 csv 或 xlsx。"),
    ],
)
def test_refusals_speak_the_callers_language(world: World, language: str, detail: str) -> None:
    response = submit(caller("alice", **{"accept-language": language}), format="pdf")
    assert response.json()["detail"] == detail
    assert response["Content-Language"] == ("en" if language.startswith("en") else "zh")
