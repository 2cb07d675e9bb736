"""A download from an object store: the product checks and audits, the store sends the bytes."""

import logging
import urllib.request
import uuid
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from exports.conf import conf
from tests import services
from tests.conftest import exports_settings
from tests.integration.api_client import EXPORTS, alice, bob, caller, entry, tokens, world  # noqa: F401
from tests.integration.api_world import World, succeeded
from tests.integration.test_api_download import NAME, fetch, link_of


@pytest.fixture
def prefix(world: World, s3: services.S3) -> Iterator[str]:
    prefix = f"api/{uuid.uuid4().hex}"
    with exports_settings(**s3.settings(prefix=prefix)):
        yield prefix


@pytest.fixture
def task_id(prefix: str, world: World, alice: Client) -> str:
    return succeeded(world, alice)


def test_a_click_leads_to_the_store_for_a_minute(task_id: str, alice: Client) -> None:
    response = Client().get(link_of(alice, task_id))
    location = response["Location"]
    assert (response.status_code, response.content) == (302, b"")
    assert parse_qs(urlsplit(location).query)["X-Amz-Expires"] == ["60"]
    assert (response["Cache-Control"], response["Referrer-Policy"]) == ("private, no-store", "no-referrer")
    with urllib.request.urlopen(location, timeout=30) as answer:
        data = answer.read()
        assert answer.headers["Content-Disposition"] == (
            f"attachment; filename=\"export_2026-09-13_2026-09-15.csv\"; filename*=UTF-8''{NAME}"
        )
        assert answer.headers["Content-Type"].split(";")[0] == "text/csv"
    assert data.startswith(b"\xef\xbb\xbf") and data.count(b"\r\n") == 31


def test_a_range_is_served_by_the_store(task_id: str, alice: Client) -> None:
    response = fetch(alice, task_id, range="bytes=0-2")
    request = urllib.request.Request(response["Location"], headers={"Range": "bytes=0-2"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert (answer.status, answer.read()) == (206, b"\xef\xbb\xbf")
    assert fetch(alice, task_id, range="bytes=999999-").status_code == 416


def test_head_and_an_unchanged_file_are_answered_here(task_id: str, alice: Client) -> None:
    head = alice.head(f"{EXPORTS}/{task_id}/download")
    assert (head.status_code, head.has_header("Location")) == (200, False)
    assert int(head["Content-Length"]) > 1000
    assert alice.get(f"{EXPORTS}/{task_id}/download", headers={"if-none-match": head["ETag"]}).status_code == 304


def test_the_right_is_asked_for_at_the_click(task_id: str, alice: Client, bob: Client) -> None:
    url = link_of(alice, task_id)
    assert fetch(bob, task_id).status_code == 404
    with exports_settings(tokens=(entry("bob"),)):
        assert Client().get(url).status_code == 403


def test_a_click_is_audited_and_nothing_signed_is_kept(
    world: World, task_id: str, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    location = Client().get(link_of(alice, task_id))["Location"]
    assert [record.getMessage() for record in caplog.records if record.name.endswith("audit")] == ["audit.download"]
    [signature] = parse_qs(urlsplit(location).query)["X-Amz-Signature"]
    assert not any(signature in str(vars(record)) for record in caplog.records)
    assert not any(signature.encode() in (value or b"") for value in world.dump().values())


def test_an_object_that_is_gone_is_gone_and_a_store_that_is_away_is_away(
    task_id: str, prefix: str, world: World, alice: Client, s3: services.S3
) -> None:
    key = world.read(task_id).object_key
    with exports_settings(s3_endpoint_url=f"http://127.0.0.1:{services.free_port()}"):
        response = fetch(alice, task_id)
    assert (response.status_code, response.has_header("Retry-After")) == (503, True)
    s3.client().delete_object(Bucket=conf().s3_bucket, Key=f"{prefix}/{key}")
    response = fetch(alice, task_id)
    assert (response.status_code, response.json()["code"]) == (410, "task_gone")
