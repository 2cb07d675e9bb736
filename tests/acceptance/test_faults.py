"""`manage.py export_faults` as an adopter runs it: against an installation whose workers are stopped."""

import datetime as dt
import itertools
import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from config.faults import window
from config.faults.criteria import CRITERIA
from config.management.commands.export_faults import Row
from exports.messages import Language, Text
from tests.acceptance.conftest import Open
from tests.databases import OrdersDatabase
from tests.processes import Site
from tests.six_days import ROWS

ROOT = Path(__file__).resolve().parents[2]
# A minute on two cores of one's own; they may be shared.
pytestmark = pytest.mark.timeout(400)
WINDOW = ("--from", "2026-09-01", "--to", "2026-09-06")


def try_faults(site: Site, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    done = subprocess.run(
        [sys.executable, "manage.py", "export_faults", *arguments],
        cwd=ROOT,
        env={**site.environment, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=380,
    )
    return done.returncode, done.stdout, done.stderr


def left_behind(site: Site) -> tuple[list[str], list[str]]:
    """Keys of tasks in Redis, and files of tasks in spool and store."""
    with redis.Redis.from_url(site.valkey.url(1)) as state:
        names = [key.decode() for key in state.keys("export:*")]
        indexed = [name for name in names if name.startswith(("export:index:", "export:runnable:"))]
    files = [path.name for name in ("spool/tasks", "files") for path in (site.folder / name).glob("exp_*")]
    return [name for name in names if ":exp_" in name or ":request:" in name] + indexed, files


@pytest.mark.slow
def test_every_criterion_holds_on_the_orders_table_and_nothing_is_left(open_site: Open) -> None:
    site = open_site()
    code, out, err = try_faults(site, *WINDOW, "--json")
    assert code == 0, out + err
    answer: dict[str, Any] = json.loads(out)
    assert (answer["kind"], answer["rows"]) == ("orders", ROWS)
    assert [found["name"] for found in answer["criteria"]] == [*CRITERIA, "clean_up"]
    seen = {found["name"]: found["seen"] for found in answer["criteria"]}
    assert f"{ROWS:,} rows, 6 shards" in seen["undisturbed"]
    assert seen["ten_submits"] == "10 answers, 1 task, 1 file"
    assert re.search(r"fetch failed on 2026-09-0\d, page 1: disk full", seen["failed"])
    assert left_behind(site) == ([], [])


@pytest.mark.slow
def test_a_table_of_ones_own_is_tried_in_the_same_way(open_site: Open, tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs/adopting.md").read_text("utf-8"), re.DOTALL)
    assert found is not None
    (tmp_path / "acme_exports.py").write_text(found[1], "utf-8")
    path = tmp_path / "warehouse.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE shipments (id integer PRIMARY KEY, shipped_at, carrier, receiver, weight)")
        first = dt.datetime(2026, 9, 1, 1, tzinfo=dt.UTC)
        connection.executemany(
            "INSERT INTO shipments VALUES (?, ?, 'SF', '张三', 1.5)",
            [(number, f"{first + dt.timedelta(minutes=number):%Y-%m-%d %H:%M:%S}") for number in range(1, 2500)],
        )
        connection.commit()
    site = open_site(KINDS="acme_exports.ShipmentsKind", database_url=f"sqlite:///{path}")
    code, out, err = try_faults(
        site,
        *("--from", "2026-09-01", "--to", "2026-09-02", "--language", "zh", "--only", "kill_in_fetch"),
        PYTHONPATH=str(tmp_path),
    )
    assert code == 0, out + err
    heading, undisturbed, killed, cleaned = out.splitlines()
    assert heading.startswith("shipments 2026-09-01 … 2026-09-02")
    assert undisturbed.startswith("不受干扰的导出包含计划的每一行 · 通过 · ")
    assert re.fullmatch(
        r"读取中 kill -9 后自行继续 · 通过 · 在 [\d,]+/[\d,]+ 行时终止全部进程，[\d.]+ 秒后完成，字节相同", killed
    )
    assert cleaned == "不留下任何任务和文件 · 通过 · 任务和文件均已删除"
    assert left_behind(site) == ([], [])


def test_a_criterion_that_does_not_hold_is_told_and_ends_with_1(open_site: Open) -> None:
    """A store that is a file: no export can succeed, and none can be removed."""
    site = open_site(RETRY_DELAYS_MS="10,10,10")
    (site.folder / "files").write_text("in the way")
    code, out, err = try_faults(site, *WINDOW, "--only", "undisturbed")
    assert code == 1, out + err
    assert re.search(r"every planned row · FAILED · exp_\w+ failed, store_unavailable", out)
    assert re.search(r"nothing is left behind · FAILED · exp_\w+ NotADirectoryError", out)


def test_a_refusal_fails_its_criterion_and_the_others_are_tried(open_site: Open) -> None:
    site = open_site(SUBMITS_PER_MINUTE="1")
    code, out, err = try_faults(site, *WINDOW, "--only", "cancelled", "failed")
    assert code == 1, out + err
    assert [line.split(" · ")[1:] for line in out.splitlines()[2:]] == [
        ["FAILED", "too_many_submits"],
        ["FAILED", "too_many_submits"],
        ["passed", "all tasks and files are removed"],
    ]
    assert left_behind(site) == ([], [])


def test_what_was_seen_may_hold_braces() -> None:
    row = Row("n", Text("标准", "criterion"), False, Text("页 {1}", "page {1}"))
    assert row.line(Language.EN) == "criterion · FAILED · page {1}"
    assert row.data(Language.ZH)["seen"] == "页 {1}"


def test_it_refuses_beside_the_tasks_of_others(open_site: Open) -> None:
    site = open_site()
    site.start_web()
    task_id = site.submit("2026-09-01", "2026-09-01")
    code, out, err = try_faults(site, *WINDOW)
    assert (code, out) == (1, "")
    assert "there are queued tasks" in err
    assert site.progress(task_id)["state"] == "queued"


def test_the_latest_quiet_days_with_enough_rows_are_chosen(desk: Path, sqlite_orders: OrdersDatabase) -> None:
    at = dt.datetime(2026, 9, 1, 4, tzinfo=dt.UTC)
    days = {1: 500, 3: 250, 4: 200, 12: 900}
    numbers = itertools.count(1)
    for day, rows in days.items():
        sqlite_orders.insert({"id": next(numbers), "created_at": at.replace(day=day)} for _ in range(rows))
    chosen = window.choose("orders", today=dt.date(2026, 9, 14))
    assert (chosen.first_day, chosen.last_day, chosen.rows) == (dt.date(2026, 9, 3), dt.date(2026, 9, 4), 450)
    assert chosen.page_rows == 7
    with pytest.raises(window.NoWindow):
        window.choose("orders", today=dt.date(2026, 9, 1))
    with pytest.raises(window.NoWindow, match="hold 250 rows"):
        window.given("orders", dt.date(2026, 9, 3), dt.date(2026, 9, 3))
