"""The pages of the ops site without JavaScript: what they show, what they do, and whom they refuse."""

import html
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dramatiq
import pytest
import redis
from django.test import Client
from django.urls import get_resolver

from config.broker import make_broker
from exports import service
from exports.conf import conf
from exports.contracts import Format, Principal, Shard, State, Step
from exports.errors import StepBroken, TaskDeleted
from exports.messages import CAUSES
from exports.ops import texts
from exports.pipeline import notify, steps
from exports.state.replies import Claim
from exports.state.store import store
from tests import kinds, ops_site, pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.integration.test_api_access import addresses
from tests.ops_site import operator
from tests.receiver import OPEN, receiving
from tests.services import Valkey

DAYS = ("2026-09-14", "2026-09-15")
CANARY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def users() -> dict[str, Any]:
    return ops_site.users()


@pytest.fixture(autouse=True)
def orders(desk: Path, valkey: Valkey, users: dict[str, Any], sqlite_orders: OrdersDatabase) -> Iterator[None]:
    """30 orders on the first of the two days and one on the second."""
    sqlite_orders.insert({"id": number, "created_at": utc(f"2026-09-14 04:00:{number:02d}")} for number in range(1, 31))
    sqlite_orders.add(31, created_at=utc("2026-09-15 04:00:00"))
    with ops_site.served(valkey, users):
        yield


def fail_task(**request: Any) -> str:
    """A task that failed while it read its second day."""

    def broken(shard: Shard, _cursor: str, _limit: int) -> None:
        if shard.id == DAYS[1]:
            raise StepBroken("as if by a fault nobody knows")

    kinds.FlakyOrders.before_read.append(broken)
    task_id = pipeline.submit(*DAYS, **request)
    assert pipeline.work(task_id).state == "failed"
    kinds.FlakyOrders.before_read.clear()
    return task_id


def begin(task_id: str) -> None:
    ref = store().ref(task_id)
    assert ref is not None
    assert isinstance(steps.claim_step(ref, pipeline.view(task_id).request, Step.PLAN), Claim)


def text(response: Any, status: int = 200) -> str:
    assert response.status_code == status
    return html.unescape(response.content.decode())


def listed(client: Client, query: str = "") -> list[str]:
    """Ids of the tasks in the list, in order."""
    return re.findall(r'<a href="/ops/tasks/(exp_\w+)/">', text(client.get(f"/ops/tasks/{query}")))


def act(client: Client, action: str, *task_ids: str, reason: str = "because") -> Any:
    return client.post(f"/ops/actions/{action}/", {"tasks": " ".join(task_ids), "reason": reason}, follow=True)


# --- who is let in ---------------------------------------------------------------------------


def test_every_address_of_the_site_is_listed() -> None:
    assert {name for name, _ in addresses(get_resolver("tests.ops_site").url_patterns)} == {
        "index", "tasks", "task", "download", "manifest", "manifest-file", "action", "runbook", "language", "login", "logout",
        "missing",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["", "nobody"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE"])
def test_no_address_but_the_login_answers_without_the_right(name: str, method: str) -> None:
    client = Client()
    if name:
        ops_site.login(client, name)
    task_id = fail_task()
    for address_name, path in addresses(get_resolver("tests.ops_site").url_patterns):
        if address_name == "login":
            continue
        response = client.generic(method, path.replace("<str:action>", "cancel"), f"tasks={task_id}&reason=x")
        assert response.status_code == 302, path
        assert response["Location"].startswith("/ops/"), path
    assert pipeline.view(task_id).state is State.FAILED


def test_a_reader_sees_everything_and_changes_nothing() -> None:
    task_id, reader = fail_task(), operator("rita")
    shown = text(reader.get(f"/ops/tasks/{task_id}/"))
    assert "unclassified" in shown and "Rerun" not in shown
    assert "/ops/actions/" not in text(reader.get("/ops/tasks/?state=failed"))
    for response in (reader.get(f"/ops/actions/rerun/?task={task_id}"), act(reader, "rerun", task_id)):
        assert "You have no right to do this." in text(response, 403)
    assert pipeline.view(task_id).epoch == 1


def test_an_action_needs_the_csrf_token_and_a_post() -> None:
    task_id = fail_task()
    client = Client(enforce_csrf_checks=True)
    client.cookies = operator().cookies
    assert act(client, "cancel", task_id).status_code == 403
    client.get(f"/ops/actions/cancel/?task={task_id}&tasks={task_id}&reason=x")
    assert operator().post(f"/ops/tasks/{task_id}/").status_code == 405
    assert pipeline.view(task_id).state is State.FAILED


@pytest.mark.parametrize("path", ["", "tasks/", "tasks/exp_none/", "runbook/", "login/", "actions/none/"])
def test_nothing_inline_may_run_and_nothing_inline_is_there(path: str) -> None:
    response = operator().get(f"/ops/{path}")
    policy = dict(part.split(" ", 1) for part in response["Content-Security-Policy"].split("; "))
    assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
    page = response.content.decode()
    assert not re.search(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|javascript:", page)


# --- what is shown ---------------------------------------------------------------------------


def test_the_overview_counts_tasks_and_shows_what_runs_and_what_failed(redis_db: "redis.Redis[bytes]") -> None:
    failed, stalled = fail_task(), pipeline.submit(*DAYS)
    begin(stalled)
    redis_db.hset(f"export:task:{stalled}", "progress_at", int((time.time() - 121) * 1000))
    queued = pipeline.submit(*DAYS)
    page = text(operator().get("/ops/"))
    figures = dict(re.findall(r'state=(\w+)"[^>]*><strong>(\d+)</strong>', page))
    assert figures == {"running": "1", "queued": "1", "stalled": "1", "failed": "1"}
    assert failed in page and stalled in page and queued not in page
    assert "fetch failed on 2026-09-15, page 1: internal error, 1 attempt." in page
    assert '<rect x="956"' in page  # 30 rows in this minute


def test_the_list_puts_failed_tasks_first_and_goes_on_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    done = pipeline.submit(*DAYS)
    pipeline.work(done)
    failed = [fail_task() for _ in range(3)]
    queued = [pipeline.submit(*DAYS) for _ in range(3)]
    expected = [*reversed(failed), *reversed(queued), done]
    client = operator()
    assert listed(client) == expected
    monkeypatch.setattr("exports.ops.pages._PAGE", 2)
    found, query = [], ""
    while query is not None:
        found += listed(client, query)
        more = re.search(r'rel="next" href="([^"]*)"', text(client.get(f"/ops/tasks/{query}")))
        query = more[1] if more else None
    assert found == expected


def test_the_list_is_narrowed_by_each_field(redis_db: "redis.Redis[bytes]") -> None:
    client, failed = operator(), fail_task(request_id="Invoice-7")
    sheet = pipeline.submit(*DAYS, output=Format.XLSX)
    begin(stalled := pipeline.submit(*DAYS))
    redis_db.hset(f"export:task:{stalled}", "progress_at", 1)
    redis_db.hset(f"export:task:{sheet}", "owner", "bob")
    redis_db.zadd("export:index:queued", {sheet: int(time.time() * 1000) - 700_000})
    trace_id = pipeline.view(stalled).trace_id
    for query, expected in {
        "?state=failed": [failed], "?state=stalled": [stalled], "?state=running": [stalled], "?owner=bob": [sheet],
        "?owner=bo": [], "?format=xlsx": [sheet], "?code=unclassified": [failed], "?code=poison": [],
        "?age=before_10m": [sheet], "?age=within_1h": [failed, stalled, sheet], "?q=invoice": [failed],
        f"?q={trace_id}": [stalled], f"?q={sheet[-8:]}": [sheet], "?state=queued&format=csv": [],
        "?q=%2E%2A": [],
    }.items():  # fmt: skip
        assert listed(client, query) == expected, query


def test_a_failed_task_tells_where_why_what_to_do_and_what_happened(redis_db: "redis.Redis[bytes]") -> None:
    task_id = fail_task()
    page = text(operator().get(f"/ops/tasks/{task_id}/"))
    for expected in (
        "fetch failed on 2026-09-15, page 1", "unclassified · internal error", "at most 2,000 rows from the first one",
        'href="/ops/runbook/#unclassified"', "30 / 30", "0 / 1", "1 of 2 done", pipeline.view(task_id).trace_id,
        "unclassified 2026-09-15", "stopped here", texts.REMEDIES["unclassified"].en,
    ):  # fmt: skip
        assert expected in page, expected


def test_an_unknown_task_and_an_unknown_place_are_explained() -> None:
    client = operator()
    assert "There is no such task" in text(client.get("/ops/tasks/exp_none/"), 404)
    assert "There is no such task" in text(client.get("/ops/tasks/exp_none/download/"), 404)
    assert "not the place of a list" in text(client.get("/ops/tasks/?behind=x"), 400)


def test_a_file_that_is_not_there_yet_is_explained() -> None:
    assert "it has no file" in text(operator().get(f"/ops/tasks/{fail_task()}/download/"), 409)


def test_a_broker_that_is_away_hides_its_own_figures_alone() -> None:
    broker = make_broker("redis://127.0.0.1:1/0", middleware=[])
    before = dramatiq.get_broker()
    dramatiq.set_broker(broker)
    try:
        page = text(operator().get("/ops/"))
    finally:
        dramatiq.set_broker(before)
        broker.close()
    assert page.count('<td class="number">unknown</td>') == 5


def test_a_redis_that_is_away_is_explained() -> None:
    client = operator()
    with exports_settings(redis_url="redis://127.0.0.1:1/1"):
        assert "Redis does not answer" in text(client.get("/ops/"), 503)


def test_the_site_speaks_the_language_of_the_reader_and_changes_it() -> None:
    client = Client(headers={"accept-language": "zh-CN"})
    ops_site.login(client)
    assert "<h1>概览</h1>" in text(client.get("/ops/"))
    assert client.post("/ops/language/", {"language": "en", "next": "/ops/tasks/"})["Location"] == "/ops/tasks/"
    assert "<h1>Overview</h1>" in text(client.get("/ops/"))


def test_markup_in_what_users_send_is_escaped_everywhere(redis_db: "redis.Redis[bytes]") -> None:
    task_id, client = fail_task(request_id=CANARY), operator()
    fields = ("owner", "error_code", "error_shard", "error_cursor", "file_name", "warnings")
    values = dict.fromkeys(fields, CANARY) | {"warnings": f'[["{CANARY}", 1, ["{CANARY}"]]]'}
    redis_db.hset(f"export:task:{task_id}", mapping=values)
    redis_db.rpush(f"export:events:{task_id}", f"1|{CANARY}|{CANARY}")
    act(client, "cancel", "exp_none", reason=CANARY)
    for path in ("", "tasks/", f"tasks/{task_id}/", f"tasks/?q={CANARY}", f"actions/cancel/?task={task_id}"):
        page = client.get(f"/ops/{path}").content.decode()
        assert CANARY not in page and html.escape(CANARY) in page, path


def test_a_deleted_task_is_in_no_list_and_its_page_says_so() -> None:
    kept, deleted = fail_task(), fail_task()
    service.delete(deleted, principal=Principal("ann", frozenset()), reason="asked")
    client = operator()
    page = text(client.get("/ops/tasks/"))
    assert kept in page and deleted not in page
    assert "The task and its file were deleted." in text(client.get(f"/ops/tasks/{deleted}/"), 410)


def test_each_error_code_has_a_remedy_and_a_place_in_the_runbook() -> None:
    assert list(texts.REMEDIES) == list(CAUSES)
    page = text(operator().get("/ops/runbook/"))
    assert [code for code in CAUSES if f'id="{code}"' not in page] == []


# --- what is done ----------------------------------------------------------------------------


def test_a_failed_task_is_brought_to_its_file_without_javascript() -> None:
    task_id, client = fail_task(), operator()
    preview = text(client.get(f"/ops/actions/rerun/?task={task_id}"))
    assert "rows to read: 1, in shards: 1; rows kept: 30" in preview
    assert pipeline.view(task_id).epoch == 1
    shown = text(act(client, "rerun", task_id, reason="disk replaced"))
    assert "Rerun what is missing, tasks: 1" in shown and "olga: disk replaced" in shown
    kinds.FlakyOrders.reads.clear()
    assert pipeline.work(task_id).state == "succeeded"
    assert {shard_id for shard_id, _, _ in kinds.FlakyOrders.reads} == {DAYS[1]}
    response = client.get(f"/ops/tasks/{task_id}/download/")
    assert b"".join(response.streaming_content) == pipeline.read_file(task_id)  # type: ignore[attr-defined]
    assert response["Content-Disposition"].startswith("attachment; ")


def test_the_preview_of_each_action_tells_what_comes(sqlite_orders: OrdersDatabase) -> None:
    task_id, client = fail_task(), operator()

    def seen(action: str) -> str:
        return text(client.get(f"/ops/actions/{action}/?task={task_id}"))

    assert "is planned anew and read from the first row" in seen("rerun-from-scratch")
    assert "is cancelled and its rows are freed" in seen("cancel")
    with exports_settings(delimiter=";"):
        assert "the task can only run again from scratch" in seen("rerun")
    act(client, "cancel", task_id)
    assert pipeline.view(task_id).state is State.CANCELLED
    assert "There is nothing to do." in seen("rerun")


def test_an_action_without_a_reason_or_with_strange_ids_does_nothing() -> None:
    task_id, client = fail_task(), operator()
    assert "This field is required." in text(act(client, "rerun", task_id, reason=" "))
    assert text(act(client, "rerun", f"{task_id}/.."), 400)
    assert text(act(client, "explode", task_id), 404)
    assert "This field is required." in text(act(client, "delete", task_id, reason=""))
    assert pipeline.view(task_id).epoch == 1


def test_an_action_on_all_that_match_reaches_those_that_the_preview_showed(caplog: pytest.LogCaptureFixture) -> None:
    failed, client = [fail_task() for _ in range(3)], operator()
    done = pipeline.submit(*DAYS)
    pipeline.work(done)
    page = text(client.get("/ops/actions/rerun/?owner=ann"))
    assert "Tasks: 3" in page and "only a failed task can run again" in page
    shown = re.search(r'name="tasks" value="([^"]*)"', page)
    assert shown and shown[1].split() == failed[::-1]
    later = fail_task()
    act(client, "cancel", failed[0])
    with caplog.at_level("INFO", logger="exports"):
        answer = text(act(client, "rerun", *shown[1].split(), reason="all at once"))
    assert "Rerun what is missing, tasks: 2" in answer
    assert f"Task {failed[0]} stays as it is: The task is cancelled" in answer
    assert [pipeline.view(task_id).epoch for task_id in (*failed, later)] == [1, 2, 2, 1]
    audit = [record for record in caplog.records if record.getMessage() == "audit.rerun"]
    assert [record.event_fields["taskId"] for record in audit] == failed[:0:-1]  # type: ignore[attr-defined]
    fields = audit[0].event_fields  # type: ignore[attr-defined]
    assert (fields["owner"], fields["reason"], fields["address"]) == ("olga", "all at once", "127.0.0.1")
    [kept] = store().audit(failed[-1])
    assert (kept.action, kept.by, kept.address, kept.result) == ("rerun", "olga", "127.0.0.1", "run 2")
    assert 'id="audit"' in text(operator().get(f"/ops/tasks/{failed[-1]}/"))


def test_one_action_changes_at_most_a_hundred_tasks() -> None:
    for number in range(101):
        pipeline.submit(*DAYS, request_id=f"r{number}")
    client = operator()
    page = text(client.get("/ops/actions/cancel/?state=queued"))
    assert "More than 100 match" in page and "Tasks: 100" in page
    assert "must be at most 100" in text(act(client, "cancel", *(f"exp_{number}" for number in range(101))), 400)


def test_a_file_is_deleted_for_a_reason_and_the_audit_says_so() -> None:
    done, client = pipeline.submit(*DAYS), operator()
    pipeline.work(done)
    running = pipeline.submit(*DAYS)
    begin(running)
    assert "Delete the file" not in text(client.get(f"/ops/tasks/{running}/"))
    preview = text(client.get("/ops/actions/delete/?owner=ann"))
    assert (
        "its file, manifest and rows are deleted now" in preview and "The task is running; cancel it first." in preview
    )
    assert "Tasks: 1" in preview
    assert pipeline.read_file(done)
    answer = act(client, "delete", done, running, reason="asked for by its owner")
    assert answer.redirect_chain == [("/ops/tasks/", 302)]
    shown = text(answer)
    assert "Delete the file, tasks: 1" in shown and f"Task {running} stays as it is" in shown
    with pytest.raises(TaskDeleted) as gone:
        pipeline.view(done)
    assert (gone.value.deletion.by, gone.value.deletion.reason) == ("olga", "asked for by its owner")
    assert not any((Path(conf().store_dir) / done).glob("*"))
    [kept] = store().audit(done)
    assert (kept.action, kept.by, kept.result) == ("delete", "olga", "deleted")
    assert pipeline.view(running).state is State.RUNNING


def test_callbacks_are_shown_and_sent_anew() -> None:
    quiet, client = fail_task(), operator()
    assert "Replay callbacks" not in text(client.get(f"/ops/tasks/{quiet}/"))
    with receiving() as receiver, exports_settings(callbacks=(receiver.endpoint(),), callback_delays_ms=(0,), **OPEN):
        receiver.answers(503, 503, 200)
        told = fail_task()
        notify.deliver_due()
        page = text(client.get(f"/ops/tasks/{told}/"))
        assert "1-failed-shop" in page and "refused 503" in page and "Replay callbacks" in page
        preview = text(client.get("/ops/actions/replay/?owner=ann"))
        assert f"is sent anew: {told}-1-failed-shop" in preview and "no callback that could be sent anew" in preview
        assert len(receiver.received) == 2
        answer = text(act(client, "replay", told, quiet, reason="their server is back"))
        assert "Replay callbacks, tasks: 1" in answer and f"Task {quiet} stays as it is" in answer
        notify.deliver_due()
        assert len({(received.body, received.id) for received in receiver.received}) == 1
        assert len(receiver.received) == 3
    [kept] = store().audit(told)
    assert (kept.action, kept.by, kept.result) == ("replay", "olga", f"{told}-1-failed-shop")
    page = text(client.get(f"/ops/tasks/{told}/"))
    assert 'class="mark done">delivered' in page and "olga: their server is back" in page


# --- many tasks ------------------------------------------------------------------------------


def test_ten_thousand_tasks_cost_no_more_than_some_round_trips(
    redis_db: "redis.Redis[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = pipeline.submit(*DAYS)
    pipeline.work(task_id)
    ops_site.copy_ended_task(redis_db, task_id, count=10_000)
    client = operator()
    trips = []
    send = redis.connection.AbstractConnection.send_packed_command
    monkeypatch.setattr(
        "redis.connection.AbstractConnection.send_packed_command",
        lambda self, *given, **named: (trips.append(1), send(self, *given, **named))[1],
    )
    for path in ("", "tasks/", "tasks/?state=succeeded", "tasks/?q=no-such-text", "tasks/?owner=nobody&age=within_3d"):
        client.get(f"/ops/{path}")  # loads scripts and templates
        trips.clear()
        assert client.get(f"/ops/{path}").status_code == 200
        assert 1 <= len(trips) <= 25, path
