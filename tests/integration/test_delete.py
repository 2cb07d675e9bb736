"""Delete now: everything of an ended task goes at once, and its tombstone answers until it would have expired."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from exports import service
from exports.conf import conf
from exports.contracts import Principal, Right, State
from exports.errors import StateConflict, TaskDeleted, TaskUnknown
from exports.pipeline import sweep
from exports.state.keys import ref_of
from exports.state.store import store
from tests import pipeline
from tests.integration.api_client import EXPORTS, alice, bob, caller, submit, tokens, world  # noqa: F401
from tests.integration.api_world import World, succeeded
from tests.integration.test_commands import fail_task, orders, run, run_json, succeed  # noqa: F401

BOB = Principal("bob", frozenset({Right.SUBMIT, Right.VIEW}))


def files_of(desk: Path, task_id: str) -> list[str]:
    return [str(path.relative_to(desk)) for path in desk.glob(f"*/**/{task_id}*")]


@pytest.mark.usefixtures("orders")
def test_the_files_go_at_once_and_redis_keeps_only_a_tombstone(desk: Path, redis_db: "redis.Redis") -> None:
    task_id = succeed()
    before = pipeline.view(task_id)
    key = f"export:task:{task_id}"
    expiry = redis_db.pexpiretime(key)
    assert run("export_delete", task_id, "--reason", "a customer asked") == f"{task_id} is deleted\n"
    assert files_of(desk, task_id) == []
    assert redis_db.pexpiretime(key) == expiry
    kept = redis_db.hgetall(key)
    assert (kept[b"deleted_by"], kept[b"deleted_reason"]) == (b"ops", b"a customer asked")
    assert before.sha256.encode() not in kept.values() and before.object_key.encode() not in kept.values()
    assert not redis_db.exists(f"export:shards:{task_id}")
    with pytest.raises(TaskDeleted) as caught:
        pipeline.view(task_id)
    assert (caught.value.deletion.by, caught.value.deletion.reason) == ("ops", "a customer asked")


@pytest.mark.usefixtures("orders")
def test_a_second_deletion_keeps_who_was_first() -> None:
    task_id = succeed()
    service.delete(task_id, principal=pipeline.ANN, reason="first")
    service.delete(task_id, principal=pipeline.ANN, reason="second")
    with pytest.raises(TaskDeleted) as caught:
        pipeline.view(task_id)
    assert caught.value.deletion.reason == "first"


def test_a_failed_task_that_is_deleted_cannot_run_again(fail_task: Callable[[], str], desk: Path) -> None:
    task_id = fail_task()
    request = pipeline.view(task_id).request
    assert run_json("export_delete", task_id, "--reason", "x") == {
        "taskId": task_id,
        "deleted": True,
        "fileRemoved": True,
    }
    assert files_of(desk, task_id) == []
    assert store().rerun(ref_of(task_id, request), digest="", from_scratch=True) == "refused"
    view = store().read(task_id)
    assert view is not None and (view.state, view.failure) == (State.CANCELLED, None)
    assert store().in_state(State.FAILED) == []


@pytest.mark.usefixtures("orders")
def test_a_task_that_has_not_ended_is_refused_and_unchanged(redis_db: "redis.Redis") -> None:
    task_id = pipeline.submit("2026-09-14", "2026-09-15")
    kept = redis_db.hgetall(f"export:task:{task_id}")
    with pytest.raises(StateConflict, match="cannot_delete"):
        service.delete(task_id, principal=pipeline.ANN, reason="")
    with pytest.raises(TaskUnknown):
        service.delete(task_id, principal=BOB, reason="")
    assert redis_db.hgetall(f"export:task:{task_id}") == kept


@contextmanager
def store_away() -> Iterator[None]:
    """Where the store's folder was mounted there is a file."""
    place = Path(conf().store_dir)
    aside = place.rename(place.with_name("aside"))
    place.touch()
    try:
        yield
    finally:
        place.unlink()
        aside.rename(place)


@pytest.mark.usefixtures("orders")
def test_a_store_that_is_away_is_told_and_the_sweep_removes_the_file(desk: Path) -> None:
    task_id, out = succeed(), io.StringIO()
    with store_away(), pytest.raises(SystemExit, match="1"):
        call_command("export_delete", task_id, "--reason", "x", stdout=out)
    assert out.getvalue() == f"{task_id} is deleted; its file goes when the file store is back\n"
    assert [(entry.action, entry.result) for entry in store().audit(task_id)] == [("delete", "deleted")]
    assert files_of(desk, task_id) != []
    sweep.sweep(boot=True)
    assert files_of(desk, task_id) == []


@pytest.mark.parametrize("reason", ["", " ", "x" * 201, "a\nb"])
def test_the_command_needs_a_reason(desk: Path, reason: str) -> None:
    with pytest.raises(CommandError, match="reason"):
        run("export_delete", "exp_1", "--reason", reason)


def test_the_owner_deletes_and_every_address_says_so(world: World, alice: Client, bob: Client) -> None:
    task_id = succeeded(world, alice)
    url = f"{EXPORTS}/{task_id}"
    link = alice.get(url).json()["downloadUrl"]
    assert bob.delete(url).status_code == 404
    assert caller("viewer").delete(url).status_code == 403
    for _ in range(2):
        response = alice.delete(f"{url}?reason=done")
        assert (response.status_code, response.content) == (204, b"")
    for answer in (
        alice.get(url),
        alice.get(f"{url}/download"),
        alice.get(f"{url}/manifest"),
        alice.post(f"{url}/cancel"),
        alice.post(f"{url}/rerun", "{}", content_type="application/json"),
        Client().get(link),
        submit(alice),
    ):
        assert (answer.status_code, answer.json()["code"]) == (410, "task_deleted")
    assert alice.get(EXPORTS).json()["tasks"] == []
    [changed] = alice.get(EXPORTS, {"changedSince": "2026-01-01T00:00:00Z"}).json()["tasks"]
    assert (changed["taskId"], changed["downloadUrl"]) == (task_id, None)
    assert bob.get(url).status_code == 404


def test_the_api_tells_a_store_that_is_away_and_audits_the_deletion(world: World, alice: Client) -> None:
    task_id = succeeded(world, alice)
    url = f"{EXPORTS}/{task_id}"
    with store_away():
        response = alice.delete(url)
        assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
        assert alice.get(url).json()["code"] == "task_deleted"
    assert [(entry.action, entry.by) for entry in store().audit(task_id)][-1] == ("delete", "alice")
    assert alice.delete(url).status_code == 204
    assert not (Path(conf().store_dir) / task_id).exists()


def test_the_api_refuses_a_wrong_reason_and_a_running_task(world: World, alice: Client) -> None:
    task_id = submit(alice).json()["taskId"]
    response = alice.delete(f"{EXPORTS}/{task_id}")
    assert (response.status_code, response.json()["code"]) == (409, "cannot_delete")
    response = alice.delete(f"{EXPORTS}/{task_id}?reason={'x' * 201}")
    assert (response.status_code, response.json()["field"]) == (400, "reason")
    assert caller("ops").delete(f"{EXPORTS}/{task_id}").status_code == 409


def test_a_body_is_refused_by_the_name_of_its_field_and_deletes_nothing(world: World, alice: Client) -> None:
    task_id = succeeded(world, alice)
    url = f"{EXPORTS}/{task_id}"
    response = alice.delete(url, '{"reason": "done"}', content_type="application/json")
    assert (response.status_code, response.json()["code"], response.json()["field"]) == (400, "invalid_field", "reason")
    assert alice.delete(url, "reason=done", content_type="text/plain").status_code == 415
    assert alice.get(url).json()["state"] == "succeeded"
    assert alice.delete(url, "{}", content_type="application/json").status_code == 204
