"""The file over HTTP: ranges, names, digests, and links that stand in for credentials."""

import base64
import hashlib
import logging
import time
from typing import Any

import pytest
from django.test import Client

from exports.api import links
from exports.contracts import Principal, Right
from tests.conftest import exports_settings
from tests.integration.api_client import EXPORTS, alice, bob, body_of, caller, entry, submit, tokens, world  # noqa: F401
from tests.integration.api_world import World, succeeded

NAME = "%E8%AE%A2%E5%8D%95_2026-09-13_2026-09-15.csv"


@pytest.fixture
def task_id(world: World, alice: Client) -> str:
    return succeeded(world, alice)


@pytest.fixture
def file(world: World, task_id: str) -> bytes:
    return world.file(task_id).read_bytes()


def link_of(client: Client, task_id: str) -> str:
    url: str = client.get(f"{EXPORTS}/{task_id}").json()["downloadUrl"]
    return url


def fetch(client: Client, task_id: str, **headers: str) -> Any:
    return client.get(f"{EXPORTS}/{task_id}/download", headers=headers)


def test_the_whole_file_with_all_its_headers(task_id: str, file: bytes, alice: Client) -> None:
    """H113"""
    response = fetch(alice, task_id)
    digest = hashlib.sha256(file)
    assert (response.status_code, body_of(response)) == (200, file)
    assert response["Content-Length"] == str(len(file))
    assert response["Content-Type"].split(";")[0] == "text/csv"
    assert (
        response["Content-Disposition"]
        == f"attachment; filename=\"export_2026-09-13_2026-09-15.csv\"; filename*=UTF-8''{NAME}"
    )
    assert response["ETag"] == f'"{digest.hexdigest()}"'
    assert response["Repr-Digest"] == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    assert response["Accept-Ranges"] == "bytes"
    assert (response["Cache-Control"], response["X-Content-Type-Options"]) == ("private, no-store", "nosniff")


def test_head_has_the_headers_and_no_body(task_id: str, file: bytes, alice: Client) -> None:
    whole, head = fetch(alice, task_id), alice.head(f"{EXPORTS}/{task_id}/download", headers={"range": "bytes=0-1"})
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == dict(whole.headers)


@pytest.mark.parametrize(
    ("header", "first", "end"),
    [("bytes=0-0", 0, 1), ("bytes=10-19", 10, 20), ("bytes=100-", 100, None), ("bytes=-7", -7, None), ("bytes=5-999999999", 5, None), ("Bytes=0-3", 0, 4), ("bytes=-999999999", 0, None)],
)  # fmt: skip
def test_one_range(task_id: str, file: bytes, alice: Client, header: str, first: int, end: int | None) -> None:
    response = fetch(alice, task_id, range=header)
    part = file[first:end]
    start = first % len(file) if first else 0
    assert (response.status_code, body_of(response)) == (206, part)
    assert response["Content-Range"] == f"bytes {start}-{start + len(part) - 1}/{len(file)}"
    assert response["Content-Length"] == str(len(part))


@pytest.mark.parametrize(
    "header",
    [
        "bytes=0-1,4-5",
        "bytes=9-3",
        "bytes=-",
        "bytes=a-b",
        "lines=0-1",
        "bytes",
        "bytes=" + "9" * 30 + "-",
        "bytes=٣-٤",
    ],
)
def test_a_range_that_cannot_be_served_as_one_is_ignored(task_id: str, file: bytes, alice: Client, header: str) -> None:
    response = fetch(alice, task_id, range=header)
    assert (response.status_code, body_of(response)) == (200, file)


@pytest.mark.parametrize("header", ["bytes=99999999-", "bytes=-0"])
def test_a_range_outside_of_the_file_is_416(task_id: str, file: bytes, alice: Client, header: str) -> None:
    response = fetch(alice, task_id, range=header)
    assert (response.status_code, response["Content-Range"]) == (416, f"bytes */{len(file)}")
    assert response.json()["code"] == "range_not_satisfiable"


def test_if_range_of_another_file_gives_the_whole(task_id: str, file: bytes, alice: Client) -> None:
    same = fetch(alice, task_id)["ETag"]
    assert fetch(alice, task_id, **{"range": "bytes=0-1", "if-range": same}).status_code == 206
    for other in ('"other"', f"W/{same}", "Fri, 16 Oct 2026 08:00:00 GMT"):
        assert fetch(alice, task_id, **{"range": "bytes=0-1", "if-range": other}).status_code == 200


def test_the_same_file_again_is_304(task_id: str, alice: Client) -> None:
    response = fetch(alice, task_id, **{"if-none-match": fetch(alice, task_id)["ETag"]})
    assert (response.status_code, response.content) == (304, b"")


def test_a_browser_that_prefers_html_gets_the_file(task_id: str, alice: Client) -> None:
    assert fetch(alice, task_id, accept="text/html;q=0.9,text/csv").status_code == 200


def test_a_link_works_without_other_credentials(task_id: str, file: bytes, alice: Client) -> None:
    response = Client().get(link_of(alice, task_id))
    assert (response.status_code, body_of(response)) == (200, file)


def test_a_link_is_the_same_within_a_minute_and_fresh_in_the_next() -> None:
    """H112"""
    asker = Principal("alice", frozenset({Right.VIEW}))
    times = (60_001, 60_059, 60_061)
    first, same, fresh = (links.sign("exp_x", principal=asker, epoch=1, now_s=now_s) for now_s in times)
    assert first == same != fresh


@pytest.mark.parametrize(("age_s", "status"), [(-1, 200), (899, 200), (961, 410)])
def test_a_link_lives_15_minutes(task_id: str, alice: Client, age_s: int, status: int) -> None:
    query = links.sign(
        task_id, principal=Principal("alice", frozenset({Right.VIEW})), epoch=1, now_s=time.time() - age_s
    )
    response = Client().get(f"{EXPORTS}/{task_id}/download?{query}")
    assert response.status_code == status
    assert status == 200 or response.json()["code"] == "link_expired"


def test_a_forged_link_is_refused(task_id: str, alice: Client) -> None:
    url = link_of(alice, task_id)
    for forged in (
        url[:-1] + ("A" if url[-1] != "A" else "B"),
        url.split("?")[0] + "?link=",
        url.split("?")[0] + "?link=x:y",
    ):
        response = Client().get(forged)
        assert (response.status_code, response.json()["code"]) == (403, "link_invalid")
        assert alice.get(forged).status_code == 403


def test_a_link_is_for_one_task(world: World, task_id: str, alice: Client) -> None:
    other = succeeded(world, alice, requestId="r-2")
    response = Client().get(link_of(alice, task_id).replace(task_id, other))
    assert (response.status_code, response.json()["code"]) == (403, "link_invalid")


def test_a_link_of_another_epoch_is_gone(task_id: str) -> None:
    query = links.sign(task_id, principal=Principal("alice", frozenset({Right.VIEW})), epoch=2, now_s=time.time())
    response = Client().get(f"{EXPORTS}/{task_id}/download?{query}")
    assert (response.status_code, response.json()["code"]) == (410, "link_outdated")


def test_a_link_of_an_owner_without_a_token_is_refused(task_id: str, alice: Client) -> None:
    url = link_of(alice, task_id)
    with exports_settings(tokens=(entry("bob"),)):
        assert Client().get(url).status_code == 403


def test_a_link_of_an_owner_who_lost_the_right_is_refused(task_id: str, alice: Client) -> None:
    url = link_of(alice, task_id)
    with exports_settings(tokens=({**entry("alice"), "rights": ["export.submit"]},)):
        assert Client().get(url).status_code == 403


def test_an_operators_link_is_the_operators(task_id: str) -> None:
    url = link_of(caller("ops"), task_id)
    assert Client().get(url).status_code == 200
    with exports_settings(tokens=(entry("alice"),)):
        assert Client().get(url).status_code == 403


def test_a_link_opens_nothing_else(task_id: str, alice: Client) -> None:
    query = link_of(alice, task_id).split("?")[1]
    assert Client().get(f"{EXPORTS}/{task_id}?{query}").status_code == 401
    assert Client().post(f"{EXPORTS}/{task_id}/cancel?{query}").status_code == 401


def test_a_task_without_a_file_is_a_conflict(world: World, alice: Client) -> None:
    queued = submit(alice, requestId="r-2").json()["taskId"]
    response = fetch(alice, queued)
    assert (response.status_code, response.json()["code"]) == (409, "file_not_ready")


def test_a_file_that_was_purged_is_gone(world: World, task_id: str, alice: Client) -> None:
    world.file(task_id).unlink()
    response = fetch(alice, task_id)
    assert (response.status_code, response.json()["code"]) == (410, "task_gone")


def test_a_download_is_audited_and_its_link_kept_nowhere(
    world: World, task_id: str, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    url = link_of(alice, task_id)
    Client().get(url)
    [record] = [record for record in caplog.records if record.getMessage() == "audit.download"]
    trace_id = alice.get(f"/api/orders/export/{task_id}").json()["traceId"]
    assert vars(record)["event_fields"] == {
        "taskId": task_id, "traceId": trace_id, "owner": "alice", "address": "127.0.0.1", "epoch": 1, "offset": 0,
    }  # fmt: skip
    signature = url.rsplit("%3A", 1)[1]
    assert not any(signature in str(vars(record)) for record in caplog.records)
    assert not any(signature.encode() in (value or b"") for value in world.dump().values())
