"""What the commands say: sentences that name what was given, values for people, and nothing beside the answer."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management.base import CommandError

from exports import service
from exports.errors import TaskDeleted
from exports.management.base import sentence
from tests import pipeline
from tests.databases import OrdersDatabase
from tests.integration.test_commands import DAYS, ROOT, fail_task, orders, run, run_json, succeed  # noqa: F401
from tests.services import Valkey


@pytest.mark.parametrize(
    "arguments",
    [
        ("export_rerun", ""),
        ("export_rerun", "t", "--shard", ""),
        ("export_list", "--owner", ""),
        ("export_list", "--search", " "),
        ("export_callbacks", "replay", "t", "--callback", ""),
    ],
)
def test_an_empty_value_is_refused_where_it_would_mean_all(
    fail_task: Callable[[], str], arguments: tuple[str, ...]
) -> None:
    task_id = fail_task()
    with pytest.raises(CommandError, match=r"argument .*: must not be empty"):
        run(*arguments)
    assert pipeline.view(task_id).state == "failed"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export_callbacks", "replay-failed", "--since", "soon"), "argument --since: must be a time, such as"),
        (("export_callbacks", "replay", "t", "--multiplier", "11"), "argument --multiplier: must be a number from 1"),
        (("export_callbacks", "replay", "t", "--multiplier", "x"), "argument --multiplier: must be a number from 1"),
        (("export_callbacks", "replay", "t", "--attempts", "0"), "argument --attempts: must be a whole number from 1"),
        (("export_list", "--state", "lost"), "argument --state: invalid choice: 'lost' .choose from"),
        (("export_list", "--format", "pdf"), "argument --format: invalid choice: 'pdf' .choose from"),
        (("export_delete", "t", "--reason", " "), "argument --reason: must have 1 to 200 printable characters"),
        (
            ("export_rerun", "t", "--page-size", "many"),
            "argument --page-size: must be a whole number from 200 to 2,000",
        ),
    ],
)
def test_a_wrong_value_is_told_with_its_option_and_what_it_must_be(arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said) as refused:
        run(*arguments)
    assert "_" not in str(refused.value).removeprefix("Error: ")


def test_a_task_is_shown_without_the_spelling_of_a_programming_language(
    orders: OrdersDatabase, fail_task: Callable[[], str]
) -> None:
    for task_id in (succeed(), fail_task()):
        shown = run("export_show", task_id)
        assert not any(sign in shown for sign in ("{", "None", "True", "False", "<")), shown
    assert "drift           exact" in run("export_show", succeed())


def test_a_deletion_without_a_reason_is_told_without_one(orders: OrdersDatabase) -> None:
    for reason, end in (("", " by ann."), ("asked", " by ann: asked")):
        task_id = succeed()
        service.delete(task_id, principal=pipeline.ANN, reason=reason)
        with pytest.raises(TaskDeleted) as deleted:
            pipeline.view(task_id)
        assert sentence(deleted.value).endswith(end)


def test_lists_and_counts_leave_out_deleted_tasks_alike(orders: OrdersDatabase, fail_task: Callable[[], str]) -> None:
    tasks = [succeed(), succeed(), fail_task(), succeed()]
    for task_id in tasks[1:]:
        service.delete(task_id, principal=pipeline.ANN, reason="")
    assert [task["taskId"] for task in run_json("export_list", "--limit", "1")["tasks"]] == tasks[:1]
    assert run_json("export_list", "--limit", "1")["more"] is False
    states = run_json("export_top")["states"]
    assert {state: count for state, count in states.items() if count} == {"succeeded": 1}
    assert service.read_signs().states == states


# --- as a shell sees them --------------------------------------------------------------------


@pytest.fixture
def environment(desk: Path, valkey: Valkey, orders: OrdersDatabase) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "EXPORTS_REDIS_URL": valkey.url(1),
        "EXPORTS_BROKER_URL": valkey.url(0),
        "EXPORTS_SPOOL_DIR": str(desk / "spool"),
        "EXPORTS_STORE_DIR": str(desk / "files"),
        "DATABASE_URL": f"sqlite:///{orders.settings['NAME']}",
    }


def test_a_command_says_nothing_beside_its_answer(environment: dict[str, str]) -> None:
    task_id = pipeline.submit(*DAYS)
    done = subprocess.run(
        [sys.executable, "manage.py", "export_cancel", task_id],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{task_id} is cancelled\n", "")


@pytest.mark.parametrize("arguments", ["export_settings", "export_list", "export_show exp_none --json"])
def test_a_reader_who_leaves_ends_a_command_as_any_other_tool(environment: dict[str, str], arguments: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments.split()],
            cwd=ROOT, env=environment, stdout=gone, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr, "Exception" in done.stderr) == (-13, False, False)
