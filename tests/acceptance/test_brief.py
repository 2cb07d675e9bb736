"""The acceptance list of the brief, each line against real processes: PostgreSQL read-only, Valkey with AOF, gunicorn, workers."""

import csv
import http.client
import io
import json
import signal
import sqlite3
import threading
import time
import zipfile
from collections import Counter
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from exports.kinds.orders import sample
from tests import services, six_days
from tests.acceptance.conftest import Open
from tests.processes import TOKEN, Site, wait_for
from tests.six_days import FIRST, ROWS

WINDOW = ("2026-09-01", "2026-09-06")
SLOW = {"PAGE_ROWS": "50", "PAGE_ROWS_MIN": "20"}
"""Small pages: a run long enough to be killed in the middle."""
SLOWER = {"PAGE_ROWS": "10", "PAGE_ROWS_MIN": "10"}
"""Slow enough to be caught in the middle three times."""


def keys(data: bytes) -> list[int]:
    return [int(row[0]) for row in list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))[1:]]


def expected(postgres: services.Postgres) -> list[int]:
    with psycopg.connect(postgres.dsn(six_days.DATABASE)) as connection:
        rows = connection.execute(
            "SELECT id FROM orders ORDER BY (created_at AT TIME ZONE 'Asia/Shanghai')::date, id"
        ).fetchall()
    return [row[0] for row in rows]


def started(open_site: Open, **settings: str) -> Site:
    site = open_site(**settings)
    site.start_workers()
    site.start_web()
    return site


def in_the_middle(site: Site, task_id: str) -> None:
    """Some shards done, some rows read, not all."""

    def middle() -> bool:
        found = site.progress(task_id)
        assert found["state"] in ("queued", "running"), found
        return found["shards"]["done"] >= 1 and found["processed"] < found["total"]

    wait_for(middle)


@pytest.mark.parametrize("output", ["csv", "xlsx"])
def test_kill_9_of_every_process_in_the_middle_changes_nothing_in_the_file(
    open_site: Open, postgres: services.Postgres, output: str
) -> None:
    site = started(open_site, **SLOW)
    undisturbed = site.submit(*WINDOW, output)
    assert site.wait(undisturbed)["state"] == "succeeded"

    task_id = site.submit(*WINDOW, output)
    in_the_middle(site, task_id)
    done = finished_shards(site, task_id)
    site.kill_all()
    site.valkey.kill()
    site.valkey.start()
    site.start_web()
    at_restart = site.progress(task_id)
    assert at_restart["processed"] < ROWS
    site.start_workers()
    found = site.wait(task_id)
    assert (found["state"], found["processed"], found["total"]) == ("succeeded", ROWS, ROWS)

    first, second = site.download(undisturbed), site.download(task_id)
    if output == "csv":
        assert second == first
        assert keys(second) == expected(postgres)
    else:
        assert members(second) == members(first)
    starts = Counter(
        line["shardId"] for line in site.logs() if line["event"] == "shard.started" and line["taskId"] == task_id
    )
    assert done
    assert {starts[shard_id] for shard_id in done} == {1}


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        return {name: book.read(name) for name in book.namelist() if name != "docProps/core.xml"}


def finished_shards(site: Site, task_id: str) -> set[str]:
    return {line["shardId"] for line in site.logs() if line["event"] == "shard.done" and line["taskId"] == task_id}


def test_a_worker_killed_three_times_in_a_row_still_ends_in_the_right_file(
    open_site: Open, postgres: services.Postgres
) -> None:
    site = started(open_site, **SLOWER)
    task_id = site.submit(*WINDOW)
    workers = [process for process in site.processes if process.args[-1] == "lanes"]
    for process in workers[:3]:
        in_the_middle(site, task_id)
        process.kill()
        process.wait()
        site.start_worker("lanes")
    assert site.wait(task_id)["state"] == "succeeded"
    assert keys(site.download(task_id)) == expected(postgres)


def test_a_task_goes_on_within_70_seconds_with_default_times(open_site: Open, postgres: services.Postgres) -> None:
    site = open_site(**SLOW, LEASE_MS="60000", RENEW_EVERY_MS="10000", SWEEP_EVERY_MS="5000")
    site.start_workers()
    site.start_web()
    task_id = site.submit(*WINDOW)
    in_the_middle(site, task_id)
    site.kill_all()
    # As if the workers had run on another host: nothing proves them dead but the silence of their leases.
    for lock in (site.folder / "spool" / "alive").iterdir():
        lock.unlink()
    site.start_web()
    site.start_workers()
    began = time.monotonic()
    before = site.progress(task_id)["processed"]
    wait_for(lambda: site.progress(task_id)["processed"] > before, limit_s=70)
    assert time.monotonic() - began < 70
    # The leases of the dead ran out one after another.
    assert site.wait(task_id, limit_s=90)["state"] == "succeeded"
    assert keys(site.download(task_id)) == expected(postgres)


def test_a_redis_that_is_killed_under_live_workers_delays_a_task_and_no_more(
    open_site: Open, postgres: services.Postgres
) -> None:
    site = started(open_site, **SLOWER, LEASE_MS="60000", RENEW_EVERY_MS="10000")
    task_id = site.submit(*WINDOW)
    for _ in range(3):
        in_the_middle(site, task_id)
        site.valkey.kill()
        time.sleep(0.3)
        site.valkey.start()
    found = site.wait(task_id, limit_s=40)
    assert (found["state"], found["processed"]) == ("succeeded", ROWS)
    assert keys(site.download(task_id)) == expected(postgres)


def test_a_stopped_worker_that_wakes_up_changes_nothing(open_site: Open, postgres: services.Postgres) -> None:
    site = started(open_site, **SLOW)
    task_id = site.submit(*WINDOW)
    in_the_middle(site, task_id)
    lanes = [process for process in site.processes if process.args[-1] == "lanes"]
    for process in lanes:
        process.send_signal(signal.SIGSTOP)
    site.start_worker("lanes")
    assert site.wait(task_id)["state"] == "succeeded"
    before = site.download(task_id)
    for process in lanes:
        process.send_signal(signal.SIGCONT)
    time.sleep(1)
    assert site.progress(task_id)["state"] == "succeeded"
    assert site.download(task_id) == before
    assert keys(before) == expected(postgres)


def test_the_same_request_ten_times_at_once_gives_one_task_and_one_file(open_site: Open) -> None:
    site = started(open_site)
    body = {"requestId": "one", "from": WINDOW[0], "to": WINDOW[1], "format": "csv"}
    answers: list[tuple[int, bytes]] = []
    barrier = threading.Barrier(10)

    def post() -> None:
        barrier.wait()
        status, _, answer = site.call("POST", "/api/orders/export", body)
        answers.append((status, answer))

    threads = [threading.Thread(target=post) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(status for status, _ in answers) == [200] * 9 + [202]
    found = [json.loads(answer) for _, answer in answers]
    assert len({answer["taskId"] for answer in found}) == 1
    assert {answer["progressUrl"] for answer in found} == {f"/api/orders/export/{found[0]['taskId']}"}
    assert site.wait(found[0]["taskId"])["state"] == "succeeded"
    assert len(list((site.folder / "files").glob("*/*.csv"))) == 1
    for name, value in (("from", "2026-09-02"), ("to", "2026-09-05"), ("format", "xlsx")):
        assert site.call("POST", "/api/orders/export", {**body, name: value})[0] == 409


def test_a_failed_task_names_phase_day_and_page(open_site: Open, postgres: services.Postgres) -> None:
    # The worker that plans reads nothing: a page before the lock would be another page that fails.
    site = open_site(**SLOW, FAST_ROWS="100", STATEMENT_TIMEOUT_MS="300", PLAN_STATEMENT_TIMEOUT_MS="10000")
    site.start_web()
    site.start_worker("fast")
    task_id = site.submit(*WINDOW)
    wait_for(lambda: site.progress(task_id)["phase"] == "fetch")
    with locked_orders(postgres):
        site.start_worker("lanes")
        found = site.wait(task_id)
    assert found["state"] == "failed"
    assert (found["errorCode"], found["errorDetail"]["phase"], found["errorDetail"]["shardId"]) == (
        "database_timeout",
        "fetch",
        "2026-09-01",
    )
    assert (found["errorDetail"]["page"], found["errorDetail"]["attempts"]) == (1, 4)
    english = json.loads(site.call("GET", f"/api/orders/export/{task_id}", **{"Accept-Language": "en"})[2])["error"]
    assert "2026-09-01" in english and "page 1" in english and "fetch" in english
    assert site.call("POST", f"/api/orders/export/{task_id}/rerun")[0] in (200, 202)
    assert site.wait(task_id)["state"] == "succeeded"
    assert keys(site.download(task_id)) == expected(postgres)


class locked_orders:  # noqa: N801  reads as a statement
    """Every read of the orders table hangs for the block."""

    def __init__(self, postgres: services.Postgres) -> None:
        self._connection = psycopg.connect(postgres.dsn(six_days.DATABASE))

    def __enter__(self) -> None:
        self._connection.execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE")

    def __exit__(self, *_: object) -> None:
        self._connection.rollback()
        self._connection.close()


@pytest.mark.parametrize("trouble", ["none", "hung query", "workers dead"])
def test_a_cancel_takes_at_most_ten_seconds_and_no_shard_is_claimed_after_it(
    open_site: Open, postgres: services.Postgres, trouble: str
) -> None:
    site = open_site(
        **SLOW, LEASE_MS="60000", RENEW_EVERY_MS="10000", STATEMENT_TIMEOUT_MS="60000", PAGE_DEADLINE_MS="70000"
    )
    site.start_workers()
    site.start_web()
    task_id = site.submit(*WINDOW)
    in_the_middle(site, task_id)
    if trouble == "workers dead":
        for process in [process for process in site.processes if "gunicorn" not in process.args]:
            process.kill()
            process.wait()
        began = cancel_and_wait(site, task_id)
    elif trouble == "hung query":
        with locked_orders(postgres):
            time.sleep(0.5)
            began = cancel_and_wait(site, task_id)
    else:
        began = cancel_and_wait(site, task_id)
    assert time.monotonic() - began < 10
    cancelled_at = min(line["time"] for line in site.logs() if line["event"] == "task.cancel")
    late = [line for line in site.logs() if line["event"] == "shard.started" and line["time"] > cancelled_at]
    assert late == []
    wait_for(lambda: list((site.folder / "spool" / "tasks").glob("*")) == [])
    assert list((site.folder / "files").glob("*/*")) == []


def cancel_and_wait(site: Site, task_id: str) -> float:
    """When the cancel was sent; returns when the task is cancelled."""
    began = time.monotonic()
    assert site.cancel(task_id) in (200, 202)
    wait_for(lambda: site.progress(task_id)["state"] == "cancelled", limit_s=10)
    return began


def test_a_task_accepted_while_no_worker_runs_is_done_later(open_site: Open) -> None:
    site = open_site()
    site.start_web()
    task_id = site.submit(*WINDOW)
    time.sleep(1)
    assert site.progress(task_id)["state"] == "queued"
    site.start_workers()
    assert site.wait(task_id)["state"] == "succeeded"


def test_metrics_logs_and_trace_are_exact_across_a_kill(open_site: Open) -> None:
    site = started(open_site, **SLOW)
    trace = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    body = {"requestId": "traced", "from": WINDOW[0], "to": WINDOW[1], "format": "csv"}
    task_id = json.loads(site.call("POST", "/api/orders/export", body, traceparent=trace)[2])["taskId"]
    in_the_middle(site, task_id)
    site.kill_all()
    site.start_web()
    site.start_workers()
    found = site.wait(task_id)
    assert found["traceId"] == "a" * 32
    text = site.get("/metrics")[2].decode()
    for state, count in {"queued": 1, "running": 1, "succeeded": 1, "failed": 0, "cancelled": 0}.items():
        assert f'export_task_total{{state="{state}"}} {count}.0' in text
    assert f"export_rows_processed_total {ROWS}.0" in text
    assert 'export_task_duration_seconds_count{format="csv"} 1.0' in text
    recovered = [line for line in site.logs() if line["event"] == "step.recovered"]
    assert f'export_recoveries_total{{step="shard"}} {len(recovered)}.0' in text and recovered
    lines = [line for line in site.logs() if line.get("taskId") == task_id]
    assert [line for line in lines if line.get("traceId") != "a" * 32] == []
    starts = Counter((line["shardId"], line["fence"]) for line in lines if line["event"] == "shard.started")
    ends = Counter((line["shardId"], line["fence"]) for line in lines if line["event"] == "shard.ended")
    assert set(starts.values()) == set(ends.values()) == {1}
    assert set(ends) <= set(starts)
    assert {
        event: sum(line["event"] == event for line in lines)
        for event in ("task.submitted", "task.started", "task.ended")
    } == {
        "task.submitted": 1,
        "task.started": 1,
        "task.ended": 1,
    }


def test_four_shards_and_never_five_run_at_once(open_site: Open) -> None:
    site = open_site(**SLOW)
    for _ in range(6):
        site.start_worker("lanes")
    site.start_worker("fast")
    site.start_web()
    wait_for(lambda: len([line for line in site.logs() if line["event"] == "worker.started"]) == 7)
    task_id = site.submit(*WINDOW)
    assert site.wait(task_id)["state"] == "succeeded"
    changes = {"shard.started": 1, "shard.ended": -1}
    lines = [line for line in site.logs() if line["event"] in changes]
    running = [0]
    for line in sorted(lines, key=lambda line: (line["time"], changes[line["event"]])):
        running.append(running[-1] + changes[line["event"]])
    assert max(running) == 4


def test_the_memory_of_a_worker_does_not_grow_with_the_rows(open_site: Open, tmp_path: Path) -> None:
    """90,000 rows are 17 MB of CSV and 60 MB of sheet XML; three days are a tenth of that."""
    path = tmp_path / "orders.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        for statement in sample.statements("sqlite"):
            connection.execute(statement)
        rows = sample.generate(90_000, seed=1, days=30, first_day=FIRST)
        sample.insert(connection.cursor(), rows, vendor="sqlite")
        connection.commit()
    site = open_site(database_url=f"sqlite:///{path}")
    site.start_worker("fast")
    lane = site.start_worker("lanes")
    site.start_web()
    for output in ("csv", "xlsx"):
        assert site.wait(site.submit("2026-09-01", "2026-09-03", output))["processed"] > 4000
    three_days = peak_kib(lane.pid)
    for output in ("csv", "xlsx"):
        assert site.wait(site.submit("2026-09-01", "2026-09-30", output))["processed"] == 90_000
    assert peak_kib(lane.pid) - three_days < 12 * 1024


def peak_kib(pid: int) -> int:
    """The most resident memory that a process has had."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1])


def test_a_body_without_a_length_is_read_like_any_other(open_site: Open) -> None:
    site = open_site()
    site.start_web()
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)
    body = json.dumps({"requestId": "chunked", "from": WINDOW[0], "to": WINDOW[1], "format": "csv"}).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    statuses = []
    for chunks in ([body[:20], body[20:]], [b"x" * 4096] * 10):
        connection.request("POST", "/api/orders/export", body=iter(chunks), headers=headers, encode_chunked=True)
        answer = connection.getresponse()
        statuses.append(answer.status)
        answer.read()
        connection.close()
    assert statuses == [202, 413]
