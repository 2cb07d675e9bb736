"""The dry run: what an export would be, counted and sampled, and nothing written."""

import datetime as dt
import json
import time
from typing import Any

import pytest
from django.test import Client

from exports.api import slots
from exports.contracts import ExportRequest, Format, Step
from exports.errors import SourceUnavailable
from exports.kinds.orders import OrdersKind
from exports.pipeline import plan, render, shard, steps, upload
from exports.pipeline.estimate import estimate
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.integration.api_client import BODY, EXPORTS, alice, caller, submit, tokens, world  # noqa: F401
from tests.integration.api_world import World
from tests.kinds import FlakyOrders

VALIDATE = f"{EXPORTS}/validate"


def validate(client: Client, **changes: Any) -> Any:
    return client.post(VALIDATE, json.dumps({**BODY, **changes}), content_type="application/json")


def test_a_dry_run_tells_rows_by_day_and_writes_nothing(world: World, alice: Client) -> None:
    before = world.dump()
    response = validate(alice)
    body = response.json()
    assert response.status_code == 200
    assert (body["ok"], body["rows"], body["sheets"]) == (True, 30, None)
    assert body["shards"] == [
        {"shardId": "2026-09-13", "rows": 0}, {"shardId": "2026-09-14", "rows": 30}, {"shardId": "2026-09-15", "rows": 0},
    ]  # fmt: skip
    assert world.dump() == before
    assert list(world.redis.scan_iter("*")) == list(before)


@pytest.mark.parametrize(("fast", "normal", "queue"), [(30, 40, "fast"), (29, 30, "normal"), (10, 29, "slow")])
def test_a_dry_run_suggests_the_queue_that_the_plan_would_choose(
    world: World, alice: Client, fast: int, normal: int, queue: str
) -> None:
    with exports_settings(fast_rows=fast, normal_rows=normal):
        assert validate(alice).json()["suggestedQueue"] == queue
        task_id = submit(alice).json()["taskId"]
        assert alice.get(f"{EXPORTS}/{task_id}").json()["queue"] is None
        world.begin(task_id)
        assert alice.get(f"{EXPORTS}/{task_id}").json()["queue"] == queue


@pytest.mark.parametrize("format_", ["csv", "xlsx"])
def test_the_file_has_the_size_that_was_told(world: World, alice: Client, format_: str) -> None:
    world.orders.insert({"id": number, "created_at": utc("2026-09-13 12:00:00")} for number in range(1000, 7000))
    told = validate(alice, format=format_).json()
    task_id = submit(alice, format=format_).json()["taskId"]
    work(world, task_id)
    size = world.file(task_id).stat().st_size
    assert told["rows"] == 6030
    assert told["bytes"]["low"] <= size <= told["bytes"]["high"]
    assert told["seconds"]["low"] >= 0 < told["seconds"]["high"]
    assert told["sheets"] == (1 if format_ == "xlsx" else None)


def work(world: World, task_id: str) -> None:
    stages = ((Step.PLAN, plan.plan_task), (Step.SHARD, shard.fetch_shard), (Step.RENDER, render.render_task))
    for step, perform in (*stages, (Step.UPLOAD, upload.upload_task)):
        steps.run_slice(step, perform)
    assert world.read(task_id).state == "succeeded"


def test_sheets_and_too_many_rows_are_told(world: World) -> None:
    with exports_settings(sheet_rows=11, max_rows=29):
        body = validate(caller("alice", **{"accept-language": "en"}), format="xlsx").json()
    assert (body["ok"], body["sheets"]) == (False, 3)
    assert {"code": "row_limit", "message": "more rows than allowed"} in body["issues"]


def test_a_range_that_touches_today_is_told(world: World, alice: Client) -> None:
    today = (dt.datetime.now(dt.UTC) + dt.timedelta(hours=8)).date()
    found = validate(alice, **{"from": str(today - dt.timedelta(days=1)), "to": str(today)}).json()
    assert "touches_now" in {issue["code"] for issue in found["issues"]}
    past = validate(alice).json()
    assert "touches_now" not in {issue["code"] for issue in past["issues"]}


def test_an_empty_range_has_an_empty_file(world: World, alice: Client) -> None:
    body = validate(alice, **{"from": "2026-01-01", "to": "2026-01-02"}).json()
    assert (body["ok"], body["rows"], body["bytes"]) == (True, 0, {"low": 0, "high": 0})


def request(first: str, last: str) -> ExportRequest:
    return ExportRequest("orders", "ann", "r", dt.date.fromisoformat(first), dt.date.fromisoformat(last), Format.CSV)


def test_counts_are_those_of_the_business_day(orders_db: OrdersDatabase) -> None:
    orders_db.insert(
        {"id": number, "created_at": utc(text)}
        for number, text in enumerate(["2026-09-13 15:59:59", "2026-09-13 16:00:00", "2026-09-14 15:59:59"], start=1)
    )
    found = OrdersKind().preview(request("2026-09-13", "2026-09-14"), within_s=30)
    assert found.rows == {"2026-09-13": 1, "2026-09-14": 2}
    assert found.sample is not None and found.sample.id == "2026-09-13"


def test_a_missing_time_index_is_told(orders_db: OrdersDatabase) -> None:
    kind, wanted = OrdersKind(), request("2026-09-13", "2026-09-14")
    assert "no_time_index" not in kind.preview(wanted, within_s=30).issues
    orders_db.execute("DROP INDEX orders_created_at_id" + (" ON orders" if orders_db.vendor == "mysql" else ""))
    assert "no_time_index" in kind.preview(wanted, within_s=30).issues


def test_days_that_are_not_counted_in_time_are_guessed_and_told(world: World) -> None:
    preview = OrdersKind().preview(request("2026-09-13", "2026-09-15"), within_s=0)
    assert set(preview.rows.values()) == {None}
    with exports_settings(plan_statement_timeout_ms=100):
        begun = time.monotonic()
        found = estimate(request("2025-10-01", "2026-09-30"))
        assert time.monotonic() - begun < 5
    assert found.rows >= 0


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"from": "2026-02-30"}, 400, "invalid_field"),
        ({"to": "2026-09-01"}, 400, "invalid_field"),
        ({"from": "2025-01-01"}, 422, "window_too_long"),
    ],
)
def test_what_a_submit_refuses_a_dry_run_refuses(
    world: World, alice: Client, changes: dict[str, str], status: int, code: str
) -> None:
    response = validate(alice, **changes)
    assert (response.status_code, response.json()["code"]) == (status, code)


def test_a_dry_run_takes_a_place_and_gives_it_back(world: World, alice: Client) -> None:
    with exports_settings(long_requests=1):
        assert [validate(alice).status_code for _ in range(2)] == [200, 200]
        held = slots.take()
        assert held is not None
        assert validate(alice).json()["code"] == "busy"


def test_a_database_that_does_not_answer_is_503(world: World, alice: Client) -> None:
    def away(*_: object, **__: object) -> None:
        raise SourceUnavailable("database_connection")

    with exports_settings(kinds=("tests.kinds.FlakyOrders",)):
        FlakyOrders.before_preview.append(away)
        try:
            response = validate(alice)
        finally:
            FlakyOrders.before_preview.clear()
    assert (response.status_code, response.json()["code"], response["Retry-After"]) == (503, "orders_unavailable", "5")
