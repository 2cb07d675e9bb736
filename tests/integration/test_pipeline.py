"""The stages from submit to the finished file, in this process, against real servers; faults come from the test."""

import csv
import datetime as dt
import io
import os
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import openpyxl
import pytest

from exports import service, storage
from exports.contracts import ExportRequest, Format, Phase, Shard, State, Step
from exports.errors import PageTooLarge, SourceUnavailable, StateConflict, StepBroken
from exports.kinds.orders import OrdersKind, sample
from exports.pipeline import plan, render, shard, sweep, upload
from exports.pipeline.specification import specify
from exports.state.replies import Claim
from exports.state.store import store
from tests import pipeline
from tests.conftest import VENDORS, exports_settings
from tests.databases import OrdersDatabase
from tests.kinds import WORDS, FlakyOrders, WordsKind

pytestmark = pytest.mark.usefixtures("desk")

FIRST = dt.date(2026, 9, 1)
WINDOW = ("2026-09-01", "2026-09-03")


def fill(database: OrdersDatabase, rows: int = 700, days: int = 3) -> None:
    database.insert_rows(sample.generate(rows, seed=1, days=days, first_day=FIRST))


def csv_rows(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))


def xlsx_rows(data: bytes) -> list[tuple[object, ...]]:
    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True)
    rows = [row for sheet in book.worksheets for row in sheet.iter_rows(values_only=True)]
    book.close()
    return rows


def ids_in_order(database: OrdersDatabase) -> list[int]:
    """What the file must hold: every id, by day of the business zone and then by key."""
    rows = database.execute("SELECT id, created_at FROM orders")
    return [key for _, key in sorted((business_day(created), key) for key, created in rows)]


def business_day(value: object) -> dt.date:
    moment = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(str(value))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    return moment.astimezone(dt.timezone(dt.timedelta(hours=8))).date()


@pytest.mark.parametrize("output", list(Format))
def test_every_row_is_in_the_file_once_by_day_and_key(orders_db: OrdersDatabase, output: Format) -> None:
    fill(orders_db)
    with exports_settings(page_rows=100, page_rows_min=50):
        data = pipeline.export(*WINDOW, output=output)
    rows = csv_rows(data) if output is Format.CSV else xlsx_rows(data)
    assert [int(str(row[0])) for row in rows[1:]] == ids_in_order(orders_db)


def test_the_same_orders_give_the_same_bytes_on_every_database(request: pytest.FixtureRequest) -> None:
    texts, sheets = set(), set()
    for vendor in VENDORS:
        fill(request.getfixturevalue(f"{vendor}_orders"), rows=3000)
        texts.add(pipeline.export(*WINDOW))
        with zipfile.ZipFile(io.BytesIO(pipeline.export(*WINDOW, output=Format.XLSX))) as book:
            sheets.add(book.read("xl/worksheets/sheet1.xml"))
    assert (len(texts), len(sheets)) == (1, 1)


@pytest.mark.parametrize("output", list(Format))
def test_a_masked_export_shows_no_personal_data(orders_db: OrdersDatabase, output: Format) -> None:
    fill(orders_db, rows=30)
    request = ExportRequest("orders", "ann", "masked", FIRST, FIRST + dt.timedelta(days=2), output, masked=True)
    task_id = service.submit(request, traceparent=None).task_id
    assert pipeline.work(task_id).state is State.SUCCEEDED
    data = pipeline.read_file(task_id)
    rows = csv_rows(data) if output is Format.CSV else xlsx_rows(data)
    names = [column.name for column in OrdersKind.columns]
    for name in ("customer_name", "phone", "address"):
        assert {str(row[names.index(name)]) for row in rows[1:]} == {"***"}
    assert len({row[names.index("sku")] for row in rows[1:]}) > 1


def test_two_runs_give_the_same_bytes(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    assert pipeline.export(*WINDOW) == pipeline.export(*WINDOW)
    first, second = (zipfile.ZipFile(io.BytesIO(pipeline.export(*WINDOW, output=Format.XLSX))) for _ in range(2))
    for name in first.namelist():
        if name != "docProps/core.xml":
            assert first.read(name) == second.read(name)


@pytest.mark.parametrize("output", list(Format))
def test_an_empty_window_gives_a_file_with_a_header(orders_db: OrdersDatabase, output: Format) -> None:
    """H060"""
    assert orders_db.alias
    task_id = pipeline.submit("2026-09-01", "2026-09-01", output=output)
    view = pipeline.work(task_id)
    assert (view.state, view.processed, view.total) == (State.SUCCEEDED, 0, 0)
    data = pipeline.read_file(task_id)
    rows = csv_rows(data) if output is Format.CSV else xlsx_rows(data)
    assert len(rows) == 1


def test_a_second_kind_needs_neither_days_nor_orders() -> None:
    with exports_settings(page_rows=4, page_rows_min=2):
        data = pipeline.export(*WINDOW, kind="words")
    assert [row[0] for row in csv_rows(data)[1:]] == WORDS


def test_finished_tasks_leave_nothing_in_the_spool(sqlite_orders: OrdersDatabase, desk: Path) -> None:
    fill(sqlite_orders)
    pipeline.export(*WINDOW)
    assert list((desk / "spool" / "tasks").iterdir()) == []


# --- failures, row by row of the design's table ----------------------------------------------------


def fail_reads(error: Exception, *, times: int, shard_id: str = "2026-09-02", after: str = "") -> None:
    left = [times]

    def fault(found: Shard, cursor: str, limit: int) -> None:
        if found.id == shard_id and left[0] and (bool(cursor) or not after):
            left[0] -= 1
            raise error

    FlakyOrders.before_read.append(fault)


@pytest.mark.parametrize("code", ["database_timeout", "database_connection", "replica_conflict"])
def test_a_database_that_comes_back_costs_nothing_but_time(sqlite_orders: OrdersDatabase, code: str) -> None:
    fill(sqlite_orders)
    fail_reads(SourceUnavailable(code), times=3)
    with exports_settings(page_rows=100, page_rows_min=50):
        data = pipeline.export(*WINDOW)
    assert [int(row[0]) for row in csv_rows(data)[1:]] == ids_in_order(sqlite_orders)


def test_a_database_that_stays_away_fails_the_task_and_names_the_page(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    fail_reads(SourceUnavailable("database_timeout"), times=99, after="first page")
    with exports_settings(page_rows=100, page_rows_min=50):
        task_id = pipeline.submit(*WINDOW)
        view = pipeline.work(task_id)
        assert view.failure is not None
        assert (view.failure.code, view.failure.phase, view.failure.shard_id, view.failure.page) == (
            "database_timeout",
            Phase.FETCH,
            "2026-09-02",
            2,
        )
        assert (view.failure.attempts, view.failure.retryable) == (4, True)
        tries = [
            cursor
            for shard_id, cursor, _ in FlakyOrders.reads
            if (shard_id, cursor) == ("2026-09-02", view.failure.cursor)
        ]
        assert len(tries) == 4
        FlakyOrders.before_read.clear()
        FlakyOrders.reads.clear()
        service.rerun(task_id, principal=pipeline.ANN)
        assert pipeline.work(task_id).state is State.SUCCEEDED
    assert ("2026-09-02", "", 100) not in FlakyOrders.reads
    assert [int(row[0]) for row in csv_rows(pipeline.read_file(task_id))[1:]] == ids_in_order(sqlite_orders)


def test_a_plan_that_meets_a_timeout_goes_on_where_it_was(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    asked: list[str] = []

    def fault(shard_id: str) -> None:
        asked.append(shard_id)
        if asked.count("2026-09-02") == 1 and shard_id == "2026-09-02":
            raise SourceUnavailable("database_timeout")

    FlakyOrders.before_plan.append(fault)
    pipeline.export(*WINDOW)
    assert asked == ["2026-09-01", "2026-09-02", "2026-09-02", "2026-09-03"]


@pytest.mark.parametrize("error", [PageTooLarge(), MemoryError()])
def test_a_page_too_large_is_read_in_halves(sqlite_orders: OrdersDatabase, error: Exception) -> None:
    fill(sqlite_orders, rows=2000, days=1)

    def fault(_: Shard, __: str, limit: int) -> None:
        if limit > 300:
            raise error

    FlakyOrders.before_read.append(fault)
    data = pipeline.export("2026-09-01", "2026-09-01")
    assert [int(row[0]) for row in csv_rows(data)[1:]] == ids_in_order(sqlite_orders)
    assert [limit for _, _, limit in FlakyOrders.reads[:4]] == [2000, 1000, 500, 250]
    assert min(limit for _, _, limit in FlakyOrders.reads) == 250


def test_a_smallest_page_that_is_too_large_fails_the_task(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    fail_reads(PageTooLarge(), times=99)
    view = pipeline.work(pipeline.submit(*WINDOW))
    assert view.failure is not None and view.failure.code == "page_too_large"
    assert min(limit for _, _, limit in FlakyOrders.reads) == 200


def test_an_unknown_error_fails_the_task_and_keeps_its_cursors(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    fail_reads(RuntimeError("secret value of a row"), times=1, after="first page")
    with exports_settings(page_rows=100, page_rows_min=50):
        task_id = pipeline.submit(*WINDOW)
        view = pipeline.work(task_id)
    assert view.failure is not None and view.failure.code == "unclassified"
    assert any(found.cursor for found in store().shards(task_id))


def test_too_many_rows_fail_before_a_page_is_read(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    with exports_settings(max_rows=699):
        view = pipeline.work(pipeline.submit(*WINDOW))
    assert view.failure is not None and view.failure.code == "row_limit"
    assert FlakyOrders.reads == []


def test_a_full_disk_fails_the_task_and_a_rerun_goes_on(sqlite_orders: OrdersDatabase, tmp_path: Path) -> None:
    fill(sqlite_orders, rows=6000)
    with small_disk(tmp_path / "disk", "600k") as disk, exports_settings(spool_dir=disk / "spool", page_rows=500):
        task_id = pipeline.submit(*WINDOW)
        view = pipeline.work(task_id)
        assert view.failure is not None
        assert (view.failure.code, view.failure.phase, view.failure.retryable) == ("disk_full", Phase.FETCH, True)
        done = view.processed
        assert done > 0
        subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
        service.rerun(task_id, principal=pipeline.ANN)
        FlakyOrders.reads.clear()
        assert pipeline.work(task_id).state is State.SUCCEEDED
        assert len(FlakyOrders.reads) <= (6000 - done) / 500 + 6
        assert [int(row[0]) for row in csv_rows(pipeline.read_file(task_id))[1:]] == ids_in_order(sqlite_orders)


def test_the_reserve_of_the_spool_is_for_small_exports(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    everything_mb = 1_000_000_000
    with exports_settings(spool_reserve_mb=everything_mb, page_rows=130, page_rows_min=50):
        view = pipeline.work(pipeline.submit(*WINDOW))
        assert view.failure is not None and (view.failure.code, view.processed) == ("disk_full", 0)
        assert pipeline.work(pipeline.submit("2026-09-01", "2026-09-01")).state is State.SUCCEEDED


def test_cancelling_a_task_that_filled_the_disk_frees_it(sqlite_orders: OrdersDatabase, tmp_path: Path) -> None:
    fill(sqlite_orders, rows=6000)
    with small_disk(tmp_path / "disk", "600k") as disk, exports_settings(spool_dir=disk / "spool"):
        task_id = pipeline.submit(*WINDOW)
        assert pipeline.work(task_id).state is State.FAILED
        assert service.cancel(task_id, principal=pipeline.ANN).state is State.CANCELLED
        assert list((disk / "spool" / "tasks").iterdir()) == []


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_store_that_fails_is_tried_again_and_then_fails_the_task(sqlite_orders: OrdersDatabase, desk: Path) -> None:
    fill(sqlite_orders)
    blocked = desk / "files"
    blocked.write_text("a file where the folder of files should be")
    task_id = pipeline.submit(*WINDOW)
    view = pipeline.work(task_id)
    assert view.failure is not None
    assert (view.failure.code, view.failure.phase, view.failure.attempts) == ("store_unavailable", Phase.UPLOAD, 4)
    blocked.unlink()
    FlakyOrders.reads.clear()
    service.rerun(task_id, principal=pipeline.ANN)
    assert pipeline.work(task_id).state is State.SUCCEEDED
    assert FlakyOrders.reads == []


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "folder"])
def test_damaged_segments_are_read_again(sqlite_orders: OrdersDatabase, desk: Path, damage: str) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    run_until(task_id, Phase.RENDER)
    damage_first_segment(desk / "spool" / "tasks" / task_id, damage)
    assert pipeline.work(task_id).state is State.SUCCEEDED
    assert pipeline.read_file(task_id) == pipeline.export(*WINDOW)


def run_until(task_id: str, phase: Phase) -> None:
    """Only plan and shards, so that the task waits for render."""
    with exports_settings(page_rows=100, page_rows_min=50):
        plan.steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
        plan.steps.run_slice(Step.SHARD, lambda held: shard.fetch_shard(held) and None)
    assert pipeline.view(task_id).phase is phase


def damage_first_segment(folder: Path, damage: str) -> None:
    path = folder / render.ordered(store().segments(folder.name))[0].name
    if damage == "flip":
        data = bytearray(path.read_bytes())
        data[10] ^= 1
        path.write_bytes(data)
    elif damage == "cut":
        os.truncate(path, 10)
    elif damage == "remove":
        path.unlink()
    else:
        storage.spool().remove(folder.name)


def test_a_spool_that_loses_its_bytes_again_and_again_fails_the_task(sqlite_orders: OrdersDatabase, desk: Path) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    for _ in range(3):
        run_until(task_id, Phase.RENDER)
        damage_first_segment(desk / "spool" / "tasks" / task_id, "cut")
        plan.steps.run_slice(Step.RENDER, render.render_task)
    view = pipeline.view(task_id)
    assert view.failure is not None and (view.failure.code, view.failure.phase) == ("spool_lost", Phase.RENDER)


def test_a_changed_specification_needs_a_rerun_from_scratch(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    fail_reads(StepBroken(), times=1)
    task_id = pipeline.submit(*WINDOW)
    pipeline.work(task_id)
    with exports_settings(delimiter=";"):
        with pytest.raises(StateConflict, match="specification_changed"):
            service.rerun(task_id, principal=pipeline.ANN)
        assert pipeline.view(task_id).state is State.FAILED
        service.rerun(task_id, principal=pipeline.ANN, from_scratch=True)
        assert pipeline.work(task_id).state is State.SUCCEEDED
        header = pipeline.read_file(task_id).splitlines()[0]
    assert b";" in header


def test_a_worker_with_another_specification_changes_nothing(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    plan.steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
    before = pipeline.view(task_id)
    with exports_settings(delimiter=";"):
        shard.shard.fn()
    after = pipeline.view(task_id)
    assert (after.processed, after.shards_done, after.state) == (before.processed, 0, State.RUNNING)


def test_a_task_that_every_worker_finds_foreign_fails_and_can_run_from_scratch(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    plan.steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
    with exports_settings(delimiter=";", lease_ms=600, renew_every_ms=100):
        view = pipeline.work(task_id)
        assert view.failure is not None and view.failure.code == "specification_changed"
        service.rerun(task_id, principal=pipeline.ANN, from_scratch=True)
        assert pipeline.work(task_id).state is State.SUCCEEDED


def test_a_task_of_an_unknown_kind_keeps_nobody_else_from_work(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    strange = pipeline.submit(*WINDOW, kind="words")
    with exports_settings(kinds=("tests.kinds.FlakyOrders",)):
        assert pipeline.work(pipeline.submit(*WINDOW)).state is State.SUCCEEDED
        assert pipeline.view(strange).state is State.QUEUED
    assert pipeline.work(strange).state is State.SUCCEEDED


def test_bytes_that_change_after_render_are_not_published(sqlite_orders: OrdersDatabase, desk: Path) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    run_until(task_id, Phase.RENDER)
    plan.steps.run_slice(Step.RENDER, lambda held: render.render_task(held) and None)
    damage_first_segment(desk / "spool" / "tasks" / task_id, "flip")
    assert pipeline.work(task_id).state is State.SUCCEEDED
    assert pipeline.read_file(task_id) == pipeline.export(*WINDOW)


def test_rows_that_were_away_while_their_page_was_read_are_drift(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    kept: list[tuple[object, ...]] = []

    def hide(found: Shard, cursor: str, _: int) -> None:
        if found.id == "2026-09-02" and cursor and not kept:
            kept.extend(
                sqlite_orders.execute(
                    "SELECT * FROM orders WHERE id = (SELECT max(id) FROM orders WHERE created_at < '2026-09-02 15:00:00')"
                )
            )
            sqlite_orders.execute("DELETE FROM orders WHERE id = %s", [kept[0][0]])

    FlakyOrders.before_read.append(hide)
    FlakyOrders.before_recount.append(lambda _: kept and len(kept) == 1 and restore(sqlite_orders, kept))
    with exports_settings(page_rows=100, page_rows_min=50):
        view = pipeline.work(pipeline.submit(*WINDOW))
    assert view.drift is not None and (view.drift.drift, view.drift.difference) == ("changed", -1)


def restore(database: OrdersDatabase, kept: list[tuple[object, ...]]) -> None:
    marks = ", ".join(["%s"] * len(kept[0]))
    database.execute(f"INSERT INTO orders VALUES ({marks})", kept[0])
    kept.append(())


# --- cancel ---------------------------------------------------------------------------------------


def test_a_queued_task_is_cancelled_at_once_without_a_worker(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    assert service.cancel(task_id, principal=pipeline.ANN).state is State.CANCELLED
    plan.plan.fn()
    assert FlakyOrders.reads == []


def test_a_cancel_between_pages_commits_the_page_in_progress_and_claims_nothing_more(
    sqlite_orders: OrdersDatabase, desk: Path
) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)

    def cancel_once(_: Shard, cursor: str, __: int) -> None:
        if cursor and not pipeline.view(task_id).cancel_requested_at:
            assert service.cancel(task_id, principal=pipeline.ANN).state is State.RUNNING

    FlakyOrders.before_read.append(cancel_once)
    with exports_settings(page_rows=100, page_rows_min=50, lease_ms=60_000, renew_every_ms=10_000):
        view = pipeline.work(task_id)
    assert (view.state, view.phase, view.processed) == (State.CANCELLED, Phase.FETCH, 200)
    assert len(FlakyOrders.reads) == 2
    assert list((desk / "spool" / "tasks").iterdir()) == []


def test_a_cancel_while_planning_opens_no_shard(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    FlakyOrders.before_plan.append(lambda shard_id: service.cancel(task_id, principal=pipeline.ANN) and None)
    plan.plan.fn()
    assert pipeline.view(task_id).state is State.CANCELLED
    assert FlakyOrders.reads == []


def test_a_cancel_before_publish_leaves_no_file(sqlite_orders: OrdersDatabase, desk: Path) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    run_until(task_id, Phase.RENDER)
    plan.steps.run_slice(Step.RENDER, lambda held: render.render_task(held) and None)

    def cancel_then_upload(held: plan.Holding) -> None:
        service.cancel(task_id, principal=pipeline.ANN)
        upload.upload_task(held)

    plan.steps.run_slice(Step.UPLOAD, cancel_then_upload)
    assert pipeline.view(task_id).state is State.CANCELLED
    sweep.clean_up()
    assert list((desk / "files").glob("*/*")) == []
    assert list((desk / "spool" / "tasks").iterdir()) == []


def test_a_reader_completes_a_cancel_whose_worker_hangs(sqlite_orders: OrdersDatabase, desk: Path) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    plan.steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
    request = store().request(task_id)
    ref = store().ref(task_id)
    assert request is not None and ref is not None
    with exports_settings(cancel_grace_ms=300, lease_ms=60_000, renew_every_ms=10_000):
        plan.steps.claim_step(ref, request, Step.SHARD)
        assert service.cancel(task_id, principal=pipeline.ANN).state is State.RUNNING
        deadline = time.monotonic() + 10
        while pipeline.view(task_id).state is State.RUNNING:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert pipeline.view(task_id).state is State.CANCELLED
    assert list((desk / "spool" / "tasks").iterdir()) == []


def test_a_succeeded_task_cannot_be_cancelled(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    pipeline.work(task_id)
    with pytest.raises(StateConflict, match="cannot_cancel"):
        service.cancel(task_id, principal=pipeline.ANN)
    assert pipeline.view(task_id).state is State.SUCCEEDED


def test_a_kind_hears_of_the_end_of_a_cancelled_task() -> None:
    task_id = pipeline.submit(*WINDOW, kind="words")
    service.cancel(task_id, principal=pipeline.ANN)
    assert task_id in WordsKind.released


# --- recovery ---


def claim_shard_as(worker: str, task_id: str) -> Claim:
    """A worker that begins to read a page and is never heard of again."""
    request, ref = store().request(task_id), store().ref(task_id)
    assert request is not None and ref is not None
    spool = storage.spool().id
    found = store().claim(ref, Step.SHARD, worker=worker, digest=specify(request).digest(), spool=spool)
    assert isinstance(found, Claim)
    store().renew(found, begun=True)
    return found


def test_a_starting_process_takes_back_what_was_silent_for_too_long(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    with exports_settings(lease_ms=600, renew_every_ms=100):
        task_id = pipeline.submit(*WINDOW)
        plan.steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
        claim_shard_as("another-host:w", task_id)
        sweep.sweep(boot=True)
        assert [lease.worker for lease in store().leases([task_id])[task_id]] == ["another-host:w"]
        time.sleep(0.7)
        sweep.sweep(boot=True)
        assert store().leases([task_id])[task_id] == []
        assert pipeline.work(task_id).state is State.SUCCEEDED


def test_a_worker_that_died_on_this_host_is_replaced_at_once(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    with exports_settings(lease_ms=3_600_000):
        task_id = pipeline.submit(*WINDOW)
        plan.steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
        lock = storage.spool().stay_alive("this-host:w")
        claim_shard_as("this-host:w", task_id)
        sweep.sweep(boot=True)
        assert len(store().leases([task_id])[task_id]) == 1
        os.close(lock)
        sweep.sweep(boot=True)
        assert store().leases([task_id])[task_id] == []


def test_a_page_that_kills_its_worker_each_time_fails_the_task(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    plan.steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
    for number in range(3):
        lock = storage.spool().stay_alive(f"this-host:{number}")
        claim_shard_as(f"this-host:{number}", task_id)
        os.close(lock)
        sweep.sweep(boot=True)
    view = pipeline.view(task_id)
    assert view.failure is not None
    assert (view.failure.code, view.failure.shard_id, view.failure.page) == ("poison", "2026-09-01", 1)


# --- drift, retention -----------------------------------------------------------------------------


def test_rows_that_come_and_go_during_the_run_are_told_as_drift(sqlite_orders: OrdersDatabase) -> None:
    fill(sqlite_orders)
    ids = ids_in_order(sqlite_orders)
    deleted = []

    def remove_one(found: Shard, cursor: str, _: int) -> None:
        if found.id == "2026-09-02" and cursor and not deleted:
            deleted.append(max(ids))
            sqlite_orders.execute(
                "DELETE FROM orders WHERE id = (SELECT max(id) FROM orders WHERE created_at < '2026-09-02 16:00:00')"
            )

    FlakyOrders.before_read.append(remove_one)
    with exports_settings(page_rows=100, page_rows_min=50):
        task_id = pipeline.submit(*WINDOW)
        view = pipeline.work(task_id)
    assert view.state is State.SUCCEEDED
    assert view.drift is not None and (view.drift.drift, view.drift.difference) == ("changed", -1)
    assert view.processed == view.total == 699 == len(csv_rows(pipeline.read_file(task_id))) - 1


def test_an_expired_task_is_cleaned_up_by_name(sqlite_orders: OrdersDatabase, desk: Path, redis_db: object) -> None:
    from redis import Redis

    assert isinstance(redis_db, Redis)
    fill(sqlite_orders)
    task_id = pipeline.submit(*WINDOW)
    pipeline.work(task_id)
    for key in redis_db.keys("export:*"):
        if task_id.encode() in key or b":request:" in key:
            redis_db.delete(key)
    redis_db.zadd("export:cleanup", dict.fromkeys(redis_db.zrange("export:cleanup", 0, -1), 0))
    sweep.clean_up()
    assert list((desk / "files").glob("exp_*")) == []
    assert redis_db.keys("export:index:*") == []
    assert redis_db.zcard("export:cleanup") == 0
