"""Who did what to which task: the list that expires with the task, and what `export_show` makes of it."""

import io
import json
import logging
from pathlib import Path

import pytest
import redis
from django.core.management import call_command
from django.test import Client

from exports import service
from exports.errors import TaskUnknown
from exports.pipeline import audit
from exports.state.store import store
from tests import pipeline
from tests.conftest import exports_settings
from tests.integration.api_client import EXPORTS, alice, bob, caller, submit, tokens, world  # noqa: F401
from tests.integration.api_world import World, succeeded
from tests.integration.test_commands import orders, run, run_json, succeed  # noqa: F401
from tests.integration.test_delete import BOB


def entries(task_id: str) -> list[tuple[str, str, str, str]]:
    return [(entry.action, entry.by, entry.address, entry.result) for entry in store().audit(task_id)]


def test_everything_done_over_the_api_is_kept_with_who_where_and_result(world: World, alice: Client) -> None:
    task_id = succeeded(world, alice)
    url = f"{EXPORTS}/{task_id}"
    submit(alice)
    b"".join(alice.get(f"{url}/download"))
    b"".join(caller("ops").get(f"{url}/download", headers={"range": "bytes=5-9"}))
    alice.post(f"{url}/cancel")
    alice.get(url)
    alice.delete(url)
    assert entries(task_id) == [
        ("submit", "alice", "127.0.0.1", "created"),
        ("submit", "alice", "127.0.0.1", "known"),
        ("download", "alice", "127.0.0.1", "whole file"),
        ("download", "ops", "127.0.0.1", "bytes 5-9"),
        ("delete", "alice", "127.0.0.1", "deleted"),
    ]


def test_a_cancel_is_kept_with_the_state_that_it_led_to(world: World, alice: Client) -> None:
    task_id = submit(alice).json()["taskId"]
    alice.post(f"{EXPORTS}/{task_id}/cancel")
    assert entries(task_id)[-1] == ("cancel", "alice", "127.0.0.1", "cancelled")


@pytest.mark.usefixtures("orders")
def test_the_list_expires_with_its_task(redis_db: "redis.Redis") -> None:
    task_id = pipeline.submit("2026-09-14", "2026-09-15")
    audit.record("submit", task_id=task_id, trace_id="", by="ann", result="created")
    key = f"export:audit:{task_id}"
    assert redis_db.pexpiretime(key) == -1
    pipeline.work(task_id)
    expiry = redis_db.pexpiretime(f"export:task:{task_id}")
    assert redis_db.pexpiretime(key) == expiry > 0
    audit.record("download", task_id=task_id, trace_id="", by="ann", result="whole file")
    assert redis_db.pexpiretime(key) == expiry


@pytest.mark.usefixtures("orders")
def test_a_first_entry_behind_the_end_expires_too(redis_db: "redis.Redis") -> None:
    task_id = succeed()
    audit.record("download", task_id=task_id, trace_id="", by="ann", result="whole file")
    assert redis_db.pexpiretime(f"export:audit:{task_id}") == redis_db.pexpiretime(f"export:task:{task_id}") > 0


@pytest.mark.usefixtures("desk")
def test_an_unknown_task_gets_no_list(redis_db: "redis.Redis") -> None:
    audit.record("download", task_id="exp_nobody", trace_id="", by="ann", result="whole file")
    assert redis_db.keys("export:audit:*") == []


@pytest.mark.usefixtures("orders")
def test_the_last_200_entries_are_kept() -> None:
    task_id = pipeline.submit("2026-09-14", "2026-09-15")
    for number in range(205):
        audit.record("download", task_id=task_id, trace_id="", by="a|b", address="::1", result=str(number))
    kept = store().audit(task_id)
    assert (len(kept), kept[0].result, kept[-1].result) == (200, "5", "204")
    assert (kept[0].by, kept[0].address) == ("a|b", "::1")


@pytest.mark.usefixtures("orders")
def test_without_redis_the_log_tells_it_and_nothing_fails(caplog: pytest.LogCaptureFixture) -> None:
    task_id = succeed()
    with exports_settings(redis_url="redis://127.0.0.1:1/0"), caplog.at_level(logging.INFO):
        audit.record("download", task_id=task_id, trace_id="", by="ann", result="whole file")
    assert [record.getMessage() for record in caplog.records][-2:] == ["audit.download", "audit.not_kept"]


@pytest.mark.usefixtures("orders")
def test_export_show_prints_the_audit_also_of_a_deleted_task(desk: Path) -> None:
    task_id = succeed()
    run("export_delete", task_id, "--reason", "a customer asked")
    texts = []
    for options in ([], ["--json"]):
        out = io.StringIO()
        with pytest.raises(SystemExit, match="1"):
            call_command("export_show", task_id, *options, stdout=out)
        texts.append(out.getvalue())
    first, _, title, entry = texts[0].splitlines()
    assert first.endswith("by ops: a customer asked")
    assert (title, entry.split()[1:]) == ("audit", ["delete", "ops", "-", "deleted"])
    found = json.loads(texts[1])
    assert found["code"] == "task_deleted"
    assert [(one["action"], one["by"], one["address"]) for one in found["audit"]] == [("delete", "ops", None)]


@pytest.mark.usefixtures("orders")
def test_the_audit_of_a_task_is_for_those_who_may_see_it() -> None:
    task_id = pipeline.submit("2026-09-14", "2026-09-15")
    run("export_cancel", task_id)
    assert [entry["action"] for entry in run_json("export_show", task_id)["audit"]] == ["cancel"]
    with pytest.raises(TaskUnknown):
        service.read_audit(task_id, principal=BOB)
