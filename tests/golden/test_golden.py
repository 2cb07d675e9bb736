"""Answers are, byte by byte, what the front end was promised."""

import dataclasses
import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from exports.api import problems
from exports.api.rendering import to_json
from exports.api.representation import represent
from exports.contracts import ExportRequest, Format, Phase, State
from exports.errors import FieldInvalid
from exports.messages import REVERSED, Language
from exports.views import Failure, TaskView
from tests.integration.api_client import EXPORTS, caller, tokens, world  # noqa: F401
from tests.integration.api_world import TRACEPARENT, World

HERE = Path(__file__).parent
TASK_ID = "exp_01J8Z4K2"
STARTED = dt.datetime(2026, 10, 17, 16, 12, 3, 999_999, tzinfo=dt.timezone(dt.timedelta(hours=8)))
FINISHED = dt.datetime(2026, 10, 17, 8, 14, 59, tzinfo=dt.UTC)
FAILURE = Failure("database_timeout", Phase.FETCH, "2026-09-14", page=7, cursor="18342", attempts=4)

RUNNING: dict[str, Any] = {
    "state": State.RUNNING, "phase": Phase.FETCH, "processed": 128_430, "total": 412_000, "started_at": STARTED,
}  # fmt: skip
ENDED = {**RUNNING, "finished_at": FINISHED}
VIEWS: dict[str, dict[str, Any]] = {
    "queued": {},
    "running": RUNNING,
    "failed": {**ENDED, "state": State.FAILED, "failure": FAILURE},
    "succeeded": {**ENDED, "state": State.SUCCEEDED, "phase": Phase.UPLOAD, "processed": 412_000},
    "cancelled": {**ENDED, "state": State.CANCELLED},
}


def golden(name: str) -> bytes:
    return (HERE / name).read_bytes().rstrip(b"\n")


def view(**changes: Any) -> TaskView:
    """A queued task, with changes."""
    request = ExportRequest("orders", "alice", "r-1", dt.date(2026, 9, 1), dt.date(2026, 9, 30), Format.CSV)
    plain: dict[str, Any] = dict.fromkeys(field.name for field in dataclasses.fields(TaskView))
    plain |= {
        "task_id": TASK_ID, "request": request, "state": State.QUEUED, "epoch": 1, "processed": 0, "created_at": STARTED,
        "shards_total": 0, "shards_done": 0, "shards_running": 0, "warnings": (), "file_name": "", "sha256": "",
        "object_key": "", "run_ms": 0, "traceparent": TRACEPARENT, "read_at": FINISHED,
    }  # fmt: skip
    return TaskView(**{**plain, **changes})


@pytest.mark.parametrize("state", VIEWS)
def test_progress_begins_with_the_nine_frozen_fields(state: str) -> None:
    url = f"{EXPORTS}/{TASK_ID}/download?link=signed" if state == "succeeded" else None
    body = to_json(represent(view(**VIEWS[state]), language=Language.EN, download_url=url))
    assert body.startswith(golden(f"progress.{state}.json") + b',"')


def test_submit_answers_exactly_three_fields(world: World) -> None:
    response = caller("alice").generic("POST", EXPORTS, golden("submit.request.json"), content_type="application/json")
    [task_id] = world.task_ids()
    assert response.content.replace(task_id.encode(), TASK_ID.encode()) == golden("submit.response.json")
    assert response["Content-Type"] == "application/json"


def test_a_known_request_is_answered_with_the_same_bytes(world: World) -> None:
    client = caller("alice")
    first, second = (
        client.generic("POST", EXPORTS, golden("submit.request.json"), content_type="application/json")
        for _ in range(2)
    )
    assert (first.status_code, second.status_code) == (202, 200)
    assert first.content == second.content


def test_a_refusal_of_a_field() -> None:
    problem = problems.describe(FieldInvalid("to", REVERSED))
    assert problem is not None
    assert problems.respond(problem, language=Language.ZH).content == golden("problem.field.json")


def test_refused_bodies_of_the_frozen_protocol_name_their_field(world: World) -> None:
    body = {**json.loads(golden("submit.request.json")), "from": "2026-10-01"}
    response = caller("alice").post(EXPORTS, json.dumps(body), content_type="application/json")
    assert response.content == golden("problem.field.json")
