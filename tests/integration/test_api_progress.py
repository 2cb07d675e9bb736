"""What a poll, a list and a stream tell while a task runs: pace, time to go, position, stalls; and at what cost."""

import io
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from django.core.management import call_command
from django.test import Client

from exports import service, storage
from exports.contracts import Step
from exports.pipeline import steps, sweep
from exports.progress import outlook
from exports.state.keys import ref_of
from exports.state.replies import Claim
from exports.state.store import store
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.integration.api_client import EXPORTS, alice, bob, caller, submit, tokens, world  # noqa: F401
from tests.integration.api_world import World, succeeded
from tests.kinds import FlakyOrders


@pytest.fixture
def task_id(world: World, alice: Client) -> str:
    text: str = submit(alice).json()["taskId"]
    return text


def read(client: Client, task_id: str, **headers: str) -> Any:
    return client.get(f"{EXPORTS}/{task_id}", headers=headers)


def test_a_queued_task_tells_its_place_and_when_to_ask_again(world: World, alice: Client) -> None:
    tasks = [submit(alice, requestId=f"r-{number}").json()["taskId"] for number in range(3)]
    found = [read(alice, task_id) for task_id in tasks]
    assert [answer.json()["queuePosition"] for answer in found] == [1, 2, 3]
    assert [answer.json()["pollAfterMs"] for answer in found] == [500, 1000, 1500]
    assert [answer["Retry-After"] for answer in found] == ["1", "1", "2"]
    world.begin(tasks[0])
    assert [read(alice, task_id).json()["queuePosition"] for task_id in tasks] == [None, 1, 2]


def test_an_ended_task_has_nothing_to_wait_for(world: World, alice: Client) -> None:
    response = read(alice, succeeded(world, alice))
    body = response.json()
    assert (body["progress"], body["etaSeconds"], body["pollAfterMs"], body["stalled"]) == (100, None, None, False)
    assert "Retry-After" not in response


@pytest.mark.usefixtures("desk")
def test_the_time_to_go_is_right_within_30_percent_in_the_second_half(sqlite_orders: OrdersDatabase) -> None:
    """The pages are slowed, so that the machine's own speed does not count."""
    sqlite_orders.insert({"id": number} for number in range(1, 601))
    seen: list[tuple[float, int]] = []

    def look(*_: object) -> None:
        time.sleep(0.12)
        view = pipeline.view(task_id)
        found = outlook(view, stalled=False)
        if view.total and view.processed * 2 >= view.total and found.eta_s is not None:
            seen.append((time.monotonic(), found.eta_s))

    FlakyOrders.before_read.append(look)
    with exports_settings(page_rows=10, page_rows_min=10):
        task_id = pipeline.submit("2026-09-14", "2026-09-14")
        assert pipeline.work(task_id).state == "succeeded"
    ended = time.monotonic()
    assert len(seen) > 20
    for moment, eta_s in seen:
        # Whole seconds are told, and at least one.
        assert abs(moment + eta_s - ended) <= 0.3 * (ended - moment) + 1, (seen, ended)


def test_the_pace_is_that_of_the_last_seconds_and_unknown_where_nothing_is_committed(
    world: World, task_id: str, alice: Client
) -> None:
    world.begin(task_id)
    now_ms, key = store().now_ms(), f"export:task:{task_id}"

    def told(*, mark_s: float, next_s: float) -> list[Any]:
        """The pace after 2,000 rows since the older moment and 500 since the younger, and whether it is known how long."""
        moments = {"mark_at": now_ms - int(mark_s * 1000), "next_at": now_ms - int(next_s * 1000)}
        world.redis.hset(key, mapping={**moments, "mark_rows": 0, "next_rows": 1500, "rows_done": 2000})
        body = read(alice, task_id).json()
        return [body["rowsPerSecond"], body["etaSeconds"]]

    world.redis.hset(key, mapping={"phase": "render"})
    assert told(mark_s=12, next_s=2)[0] == pytest.approx(2000 / 12, rel=0.05)
    assert told(mark_s=22, next_s=12)[0] == pytest.approx(500 / 12, rel=0.05)
    assert told(mark_s=31, next_s=20) == [None, None]
    assert told(mark_s=130, next_s=100) == [None, None]


@pytest.mark.usefixtures("desk")
def test_progress_never_falls_also_when_segments_are_lost(sqlite_orders: OrdersDatabase) -> None:
    sqlite_orders.insert({"id": number} for number in range(1, 101))
    seen: list[int] = []
    lost = iter([True])

    def look() -> None:
        view = pipeline.view(task_id)
        seen.append(outlook(view, stalled=False).percent)
        if view.phase == "render" and next(lost, False):
            for segment in store().segments(task_id):
                storage.spool().drop(task_id, [segment.name])

    with exports_settings(page_rows=10, page_rows_min=10):
        FlakyOrders.before_read.append(lambda *_: look())
        task_id = pipeline.submit("2026-09-14", "2026-09-14")
        assert pipeline.work(task_id, between=look).state == "succeeded"
    look()
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 100)
    assert len(set(seen)) > 8


def commands(client: "redis.Redis", act: Any) -> list[str]:
    """The commands of clients that Redis got while `act` ran; not those inside scripts."""
    with client.monitor() as monitor:
        act()
        client.echo("that was all")
        found = []
        for command in monitor.listen():
            if "that was all" in command["command"]:
                return found
            name = command["command"].split()[0]
            if command["client_type"] != "lua" and name not in ("HELLO", "CLIENT", "SELECT"):
                found.append(name)
    return []


def test_a_poll_costs_one_round_trip(world: World, task_id: str, alice: Client) -> None:
    world.begin(task_id)
    read(alice, task_id)
    assert commands(world.redis, lambda: read(alice, task_id)) == ["EVALSHA"]


def test_a_poll_of_many_tasks_tells_those_that_changed(world: World, alice: Client, bob: Client) -> None:
    tasks = [submit(alice, requestId=f"r-{number}").json()["taskId"] for number in range(5)]
    submit(bob)
    first = alice.get(EXPORTS).json()
    assert len(first["tasks"]) == 5
    time.sleep(0.002)
    since = alice.get(EXPORTS, {"changedSince": first["changedAt"]}).json()["changedAt"]
    world.begin(tasks[1])
    alice.post(f"{EXPORTS}/{tasks[3]}/cancel")
    changed = alice.get(EXPORTS, {"changedSince": since}).json()
    assert {task["taskId"]: task["state"] for task in changed["tasks"]} == {tasks[1]: "running", tasks[3]: "cancelled"}
    time.sleep(0.002)
    assert alice.get(EXPORTS, {"changedSince": changed["changedAt"]}).json()["tasks"] == []
    everything = {"changedSince": "2020-01-01T00:00:00Z"}
    assert len(alice.get(EXPORTS, everything).json()["tasks"]) == 5
    asked = commands(world.redis, lambda: alice.get(EXPORTS, everything))
    assert [name for name in asked if name != "SCRIPT"] == ["MULTI", "TIME", "ZRANGEBYSCORE", "EXEC", *["EVALSHA"] * 5]


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01T00:00:00Z", "2026-09-01T08:30:00", "1790000000"])
def test_a_moment_that_is_none_is_refused(world: World, alice: Client, text: str) -> None:
    response = alice.get(EXPORTS, {"changedSince": text})
    assert (response.status_code, response.json()["field"]) == (400, "changedSince")


def test_a_stalled_task_is_marked_counted_once_and_proposed_first(world: World, alice: Client) -> None:
    tasks = [submit(alice, requestId=f"r-{number}").json()["taskId"] for number in range(2)]
    world.begin(tasks[0])
    claim = world.begin(tasks[1])
    with exports_settings(stalled_after_s=1):
        assert read(alice, tasks[1]).json()["stalled"] is False
        time.sleep(1.05)
        sweep.end_stuck()
        body = read(alice, tasks[1]).json()
        assert (body["stalled"], body["etaSeconds"], body["pollAfterMs"]) == (True, None, 5000)
        sweep.end_stuck()
        assert b"export_tasks_stalled_total 2.0\n" in caller("ops").get("/metrics").content
        assert [event.name for event in store().events(tasks[1])].count("stalled") == 1
        out = io.StringIO()
        call_command("export_list", stalled=True, json=True, stdout=out)
        assert {task["taskId"] for task in json.loads(out.getvalue())["tasks"]} == set(tasks)
        store().renew(claim, moved=True)
        assert read(alice, tasks[1]).json()["stalled"] is False
        submit(alice, requestId="younger")
        assert sorted(found.task_id for found in store().next_tasks(Step.SHARD, 2)) == sorted(tasks)


def test_a_stall_is_told_and_counted_also_when_no_worker_is_left(world: World, task_id: str, alice: Client) -> None:
    world.begin(task_id)
    with exports_settings(stalled_after_s=1):
        time.sleep(1.05)
        assert read(alice, task_id).json()["stalled"] is True
    assert b"export_tasks_stalled_total 1.0\n" in caller("ops").get("/metrics").content


@pytest.mark.usefixtures("desk")
def test_a_stalled_task_goes_on_by_itself(sqlite_orders: OrdersDatabase) -> None:
    sqlite_orders.insert({"id": number} for number in range(1, 31))
    with exports_settings(stalled_after_s=1, lease_ms=1500, renew_every_ms=200):
        task_id = pipeline.submit("2026-09-14", "2026-09-14")
        request = pipeline.view(task_id).request
        ref = ref_of(task_id, request)
        held = steps.claim_step(ref, request, Step.PLAN)  # its worker hangs from here on
        assert isinstance(held, Claim)
        time.sleep(1.6)
        assert service.is_stalled(pipeline.view(task_id))
        found = pipeline.work(task_id)
    assert (found.state, found.processed) == ("succeeded", 30)


# --- server-sent events -------------------------------------------------------------------


def events(response: Any) -> Iterator[dict[str, str]]:
    text = b""
    for chunk in response.streaming_content:
        text += chunk
        while b"\n\n" in text:
            block, text = text.split(b"\n\n", 1)
            yield dict(line.split(": ", 1) for line in block.decode().split("\n"))


def follow(client: Client, task_id: str, **headers: str) -> Any:
    return read(client, task_id, accept="text/event-stream", **headers)


def test_a_stream_tells_each_change_and_ends_with_the_task(world: World, task_id: str, alice: Client) -> None:
    response = follow(alice, task_id)
    assert response["Content-Type"] == "text/event-stream"
    found = events(response)
    assert next(found) == {"retry": "2000"}
    first = next(found)
    assert (first["event"], json.loads(first["data"])["state"]) == ("progress", "queued")
    world.run(task_id)
    last = list(found)[-1]
    assert (last["event"], json.loads(last["data"])["state"]) == ("end", "succeeded")
    assert json.loads(last["data"]) == read(alice, task_id).json()
    again = follow(alice, task_id, **{"last-event-id": last["id"]})
    assert (again.status_code, again.content) == (204, b"")
    missed = list(events(follow(alice, task_id, **{"last-event-id": first["id"]})))
    assert [event.get("id") for event in missed] == [None, last["id"]]


def test_a_stream_that_is_taken_up_again_tells_nothing_twice(world: World, task_id: str, alice: Client) -> None:
    with exports_settings(stream_s=1):
        seen = [event for event in events(follow(alice, task_id)) if "id" in event]
        assert len(seen) == 1
        again = [event for event in events(follow(alice, task_id, **{"last-event-id": seen[0]["id"]})) if "id" in event]
    assert again == []


def test_a_stream_of_a_foreign_task_is_refused(world: World, task_id: str, bob: Client) -> None:
    assert follow(bob, task_id).status_code == 404


# --- waits, streams, downloads and dry runs hold no more than half of the threads ----------


def test_a_wait_answers_with_the_finished_state(world: World, alice: Client) -> None:
    threads: list[threading.Thread] = []

    def run_soon() -> None:
        while not world.task_ids():
            time.sleep(0.02)
        world.run(world.task_ids()[0])

    threads.append(threading.Thread(target=run_soon))
    threads[0].start()
    response = submit(caller("alice", prefer="respond-async, wait=10"))
    threads[0].join()
    assert (response.status_code, response.json()["state"]) == (202, "succeeded")
    assert list(response.json()) == ["taskId", "state", "progressUrl"]
    assert response["Preference-Applied"] == "wait=10"


def test_a_wait_ends_after_its_time(world: World, task_id: str, alice: Client) -> None:
    begun = time.monotonic()
    response = read(alice, task_id, prefer="wait=1")
    assert time.monotonic() - begun >= 1
    assert (response.json()["state"], response["Preference-Applied"]) == ("queued", "wait=1")


@pytest.mark.parametrize("prefer", ["wait=0", "wait=-1", "wait", "wait=x", "respond-async", ""])
def test_a_preference_that_is_no_wait_is_ignored(task_id: str, alice: Client, prefer: str) -> None:
    response = read(alice, task_id, prefer=prefer)
    assert (response.status_code, response.has_header("Preference-Applied")) == (200, False)


def test_without_a_place_a_wait_answers_at_once_and_a_stream_and_a_download_are_503(
    world: World, alice: Client
) -> None:
    done, queued = succeeded(world, alice), submit(alice, requestId="r-2").json()["taskId"]
    with exports_settings(long_requests=1):
        held = follow(alice, queued)
        next(iter(held.streaming_content))
        waited = read(alice, queued, prefer="wait=10")
        assert (waited.status_code, waited.has_header("Preference-Applied")) == (200, False)
        for refused in (follow(alice, queued), alice.get(f"{EXPORTS}/{done}/download")):
            assert (refused.status_code, refused.json()["code"], refused["Retry-After"]) == (503, "busy", "5")
        held.close()
        assert alice.get(f"{EXPORTS}/{done}/download").status_code == 200


def test_an_answer_that_is_never_read_gives_its_place_back(world: World, alice: Client) -> None:
    done = succeeded(world, alice)
    with exports_settings(long_requests=1):
        for _ in range(3):
            response = alice.get(f"{EXPORTS}/{done}/download")
            assert response.status_code == 200
            response.close()
