"""The operators' commands over real tasks: what they print, what they change, and their exit codes."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from exports.contracts import Shard
from exports.errors import StepBroken
from tests import kinds, pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc

ROOT = Path(__file__).resolve().parents[2]
DAYS = ("2026-09-14", "2026-09-15")


def run(name: str, *arguments: str) -> str:
    out = io.StringIO()
    call_command(name, *arguments, stdout=out, stderr=out)
    return out.getvalue()


def run_json(name: str, *arguments: str) -> Any:
    return json.loads(run(name, *arguments, "--json").splitlines()[-1])


@pytest.fixture
def orders(desk: Path, sqlite_orders: OrdersDatabase) -> OrdersDatabase:
    """30 orders on the first of the two days and one on the second."""
    sqlite_orders.insert({"id": number, "created_at": utc(f"2026-09-14 04:00:{number:02d}")} for number in range(1, 31))
    sqlite_orders.add(31, created_at=utc("2026-09-15 04:00:00"))
    return sqlite_orders


@pytest.fixture
def fail_task(orders: OrdersDatabase) -> Callable[[], str]:
    """A task that failed while it read its second day."""

    def fail() -> str:
        def broken(shard: Shard, _cursor: str, _limit: int) -> None:
            if shard.id == DAYS[1]:
                raise StepBroken("as if by a fault nobody knows")

        kinds.FlakyOrders.before_read.append(broken)
        task_id = pipeline.submit(*DAYS)
        assert pipeline.work(task_id).state == "failed"
        kinds.FlakyOrders.before_read.clear()
        return task_id

    return fail


def succeed() -> str:
    task_id = pipeline.submit(*DAYS)
    assert pipeline.work(task_id).state == "succeeded"
    return task_id


# --- list and show ---------------------------------------------------------------------------


def test_a_list_without_tasks_says_so(desk: Path) -> None:
    assert run("export_list") == "no tasks\n"
    assert run_json("export_list") == {"tasks": [], "more": False}


def test_the_list_shows_all_owners_tasks_the_latest_first(orders: OrdersDatabase) -> None:
    first, second = succeed(), succeed()
    queued = pipeline.submit(*DAYS)
    assert [task["taskId"] for task in run_json("export_list")["tasks"]] == [queued, second, first]
    assert [task["taskId"] for task in run_json("export_list", "--limit", "1")["tasks"]] == [queued]
    assert [task["taskId"] for task in run_json("export_list", "--state", "succeeded")["tasks"]] == [second, first]
    assert run("export_list", "--search", first).split() == [
        *(first, "succeeded", "upload", "csv", "2026-09-14…2026-09-15", "31/31", "ann"),
    ]


def test_the_list_puts_failed_tasks_first_and_is_narrowed_like_the_page(
    orders: OrdersDatabase, fail_task: Callable[[], str]
) -> None:
    failed, queued = fail_task(), pipeline.submit(*DAYS)
    for options, expected in {
        (): [failed, queued], ("--code", "unclassified"): [failed], ("--code", "poison"): [], ("--owner", "bob"): [],
        ("--stalled",): [], ("--since", "1h"): [failed, queued], ("--since", "0m"): [], ("--format", "xlsx"): [],
    }.items():  # fmt: skip
        assert [task["taskId"] for task in run_json("export_list", *options)["tasks"]] == expected, options


def test_top_shows_what_is_there_once_where_nobody_watches(
    orders: OrdersDatabase, fail_task: Callable[[], str]
) -> None:
    failed, _ = fail_task(), pipeline.submit(*DAYS)
    shown = run("export_top")
    assert failed in shown and "queued 1" in shown and "failed 1" in shown
    seen = run_json("export_top")
    assert (seen["states"]["queued"], seen["stalled"], seen["failed"][0]["taskId"]) == (1, 0, failed)
    assert {queue["queue"]: queue["tasks"] for queue in seen["queues"]} == {
        "plan": 1, "fast": 0, "normal": 0, "slow": 0, "finish": 0,
    }  # fmt: skip
    assert seen["rowsPerSecond"] > 0


def test_a_failed_task_shows_where_it_failed_its_shards_and_its_history(fail_task: Callable[[], str]) -> None:
    task_id = fail_task()
    shown = run_json("export_show", task_id)
    assert (shown["state"], shown["phase"], shown["processed"], shown["total"]) == ("failed", "fetch", 30, 31)
    assert shown["error"].startswith("fetch failed on 2026-09-15, page 1")
    assert shown["errorCode"] == "unclassified"
    assert [(shard["shardId"], shard["state"], shard["rowsWritten"]) for shard in shown["shardList"]] == [
        ("2026-09-14", "done", 30),
        ("2026-09-15", "pending", 0),
    ]
    assert [event["name"] for event in shown["events"]][-1] == "failed"
    assert shown["error"] in run("export_show", task_id)


def test_an_unknown_task_is_a_refusal_with_a_code(desk: Path) -> None:
    with pytest.raises(CommandError, match=r"There is no such task\.") as refused:
        run("export_show", "exp_nobody")
    assert refused.value.returncode == 1


def test_no_command_shows_a_cell_of_an_order(orders: OrdersDatabase, fail_task: Callable[[], str]) -> None:
    task_id = fail_task()
    for text in (run("export_show", task_id), run("export_show", task_id, "--json"), run("export_list")):
        assert not any(cell in text for cell in ("张三丰", "+8613900000000", "路1号", "000123"))


# --- rerun and cancel ------------------------------------------------------------------------


def test_a_rerun_keeps_the_rows_and_ends_in_the_whole_file(fail_task: Callable[[], str]) -> None:
    task_id = fail_task()
    assert run("export_rerun", task_id) == f"{task_id} is queued again (run 2), 30 rows are kept\n"
    kinds.FlakyOrders.reads.clear()
    assert pipeline.work(task_id).state == "succeeded"
    assert {shard_id for shard_id, _, _ in kinds.FlakyOrders.reads} == {"2026-09-15"}
    assert pipeline.read_file(task_id).count(b"\r\n") == 32


def test_a_rerun_from_scratch_reads_every_row_again(fail_task: Callable[[], str]) -> None:
    task_id = fail_task()
    assert run("export_rerun", task_id, "--from-scratch") == f"{task_id} is queued again (run 2), from the first row\n"
    assert pipeline.work(task_id).state == "succeeded"
    assert pipeline.read_file(task_id).count(b"\r\n") == 32


def test_a_dry_run_tells_what_would_be_read_and_changes_nothing(fail_task: Callable[[], str]) -> None:
    task_id = fail_task()
    before = run("export_show", task_id)
    said = run("export_rerun", task_id, "--dry-run")
    assert said == f"{task_id} would read 1 shards, 1 rows; 30 rows are kept\n"
    again = run_json("export_rerun", task_id, "--dry-run", "--shard", DAYS[0])["tasks"]
    assert again == [{"taskId": task_id, "shards": 2, "rows": 31, "kept": 0, "refusal": None}]
    assert "planned anew" in run("export_rerun", task_id, "--dry-run", "--from-scratch")
    assert run("export_show", task_id) == before


def test_a_dry_run_refuses_what_the_run_would_refuse(fail_task: Callable[[], str]) -> None:
    task_id, unplanned = fail_task(), pipeline.submit(*DAYS)
    with exports_settings(max_rows=1):
        assert pipeline.work(unplanned).state == "failed"
    for task, *arguments in (
        (task_id, "--page-size", "199"),
        (task_id, "--page-size", "2001"),
        (task_id, "--page-size", "0"),
        (task_id, "--from-scratch", "--shard", DAYS[0]),
        (task_id, "--from-scratch", "--page-size", "500"),
        (task_id, "--shard", "2026-09-16"),
        (unplanned, "--shard", DAYS[0]),
    ):
        with pytest.raises(CommandError) as ran:
            run("export_rerun", task, *arguments)
        with pytest.raises(CommandError) as foreseen:
            run("export_rerun", task, *arguments, "--dry-run")
        assert str(foreseen.value) == str(ran.value), arguments
    assert [pipeline.view(task).epoch for task in (task_id, unplanned)] == [1, 1]


def history(task_id: str) -> dict[str, str]:
    """Event → detail of the last one."""
    return {event["name"]: event["detail"] for event in run_json("export_show", task_id)["events"]}


def test_all_that_failed_lately_run_again_with_one_command(fail_task: Callable[[], str]) -> None:
    tasks = {fail_task(), fail_task()}
    run("export_cancel", cancelled := fail_task(), "--reason", "not wanted")
    assert {task["taskId"] for task in run_json("export_rerun", "--failed-since", "1h", "--dry-run")["tasks"]} == tasks
    assert run("export_rerun", "--failed-since", "0m") == "no tasks\n"
    done = run_json("export_rerun", "--failed-since", "1h", "--reason", "database is back")["tasks"]
    assert {task["taskId"]: task["state"] for task in done} == dict.fromkeys(tasks, "queued")
    assert {history(task_id)["rerun"] for task_id in tasks} == {"ops: database is back"}
    assert history(cancelled)["cancel"] == "ops: not wanted"
    assert {pipeline.work(task_id).state for task_id in tasks} == {"succeeded"}


def test_a_shard_is_read_again_from_its_first_row_in_smaller_pages(fail_task: Callable[[], str]) -> None:
    task_id = fail_task()
    run("export_rerun", task_id, "--shard", DAYS[0], "--page-size", "200")
    kinds.FlakyOrders.reads.clear()
    assert pipeline.work(task_id).state == "succeeded"
    assert (DAYS[0], "", 200) in kinds.FlakyOrders.reads and (DAYS[1], "", 200) in kinds.FlakyOrders.reads
    assert pipeline.read_file(task_id).count(b"\r\n") == 32


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--shard", "2026-01-01"), "shard 2026-01-01 is not a shard of this task"),
        (("--page-size", "10"), "argument --page-size: must be a whole number from 200 to 2,000"),
        (("--page-size", "0"), "argument --page-size: must be a whole number from 200 to 2,000"),
        (("--from-scratch", "--page-size", "500"), "fromScratch reads every shard in pages of the usual size"),
        (("--reason", "x" * 201), "reason must have at most 200 printable characters"),
        (("--reason", "two\nlines"), "reason must have at most 200 printable characters"),
    ],
)
def test_a_rerun_that_makes_no_sense_is_refused_and_changes_nothing(
    fail_task: Callable[[], str], options: tuple[str, ...], said: str
) -> None:
    task_id = fail_task()
    before = run("export_show", task_id)
    with pytest.raises(CommandError, match=said):
        run("export_rerun", task_id, *options)
    assert run("export_show", task_id) == before


def test_only_a_failed_task_can_run_again(orders: OrdersDatabase) -> None:
    task_id = succeed()
    before = run("export_show", task_id)
    with pytest.raises(CommandError, match="The task is succeeded; only a failed task can run again"):
        run("export_rerun", task_id)
    assert run("export_show", task_id) == before


def test_a_changed_specification_says_to_start_from_scratch(fail_task: Callable[[], str]) -> None:
    task_id = fail_task()
    with exports_settings(delimiter=";"), pytest.raises(CommandError, match="only run again from scratch"):
        run("export_rerun", task_id)


def test_a_failed_task_can_be_given_up(fail_task: Callable[[], str]) -> None:
    task_id = fail_task()
    assert run("export_cancel", task_id) == f"{task_id} is cancelled\n"
    assert run_json("export_show", task_id)["state"] == "cancelled"


def test_a_succeeded_task_cannot_be_cancelled(orders: OrdersDatabase) -> None:
    task_id = succeed()
    with pytest.raises(CommandError, match="The task is succeeded and cannot be cancelled"):
        run("export_cancel", task_id)
    assert pipeline.read_file(task_id).count(b"\r\n") == 32


def test_a_sweep_by_hand_leaves_no_worker_behind(desk: Path) -> None:
    from exports.state.store import store

    assert run_json("export_sweep") == {"swept": True}
    assert store().workers() == {}


# --- exit codes, as a shell sees them --------------------------------------------------------


def shell(*arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        "PATH": "",
        "EXPORTS_REDIS_URL": "redis://127.0.0.1:1/1",
        "EXPORTS_BROKER_URL": "redis://127.0.0.1:1/0",
    }
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_a_command_that_is_used_wrongly_exits_with_2() -> None:
    assert shell("export_show").returncode == 2
    assert shell("export_list", "--state", "lost").returncode == 2
    assert shell("demo", "--rows", "none").returncode == 2
    wrong = shell("export_faults", "--from", "2026-02-30")
    assert (wrong.returncode, "--from: must be a date that exists, as YYYY-MM-DD" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("export_list", "--since", "soon"),
        ("export_list", "--limit", "0"),
        ("export_rerun",),
        ("export_rerun", "exp_1", "--failed-since", "1h"),
        ("export_top", "--every", "0"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match="argument"):
        run(*arguments)


def test_a_redis_that_is_away_exits_with_1_and_one_sentence() -> None:
    done = shell("export_list", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["code"] == "state_unavailable"
    assert "Redis does not answer or refuses" in done.stderr
    assert "Traceback" not in done.stderr
