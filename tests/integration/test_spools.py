"""Spools of several hosts: a task belongs to the one that it was planned on. A host here is a folder of its own."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from exports import storage
from exports.contracts import State, Step
from exports.pipeline import hints, plan, shard, steps, sweep
from exports.pipeline.specification import specify
from exports.state.replies import Claim, NoClaim, WorkerSign
from exports.state.store import store
from exports.storage.spool import FolderSpool
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc

DAYS = ("2026-09-14", "2026-09-15")
ROWS = 40


@pytest.fixture
def orders(desk: Path, sqlite_orders: OrdersDatabase) -> OrdersDatabase:
    for day in DAYS:
        sqlite_orders.insert(
            {"id": int(day[-2:]) * 1000 + number, "created_at": utc(f"{day} 01:00:00")} for number in range(ROWS // 2)
        )
    return sqlite_orders


@contextmanager
def on(host: str, desk: Path, **settings: object) -> Iterator[None]:
    small = {"page_rows": 5, "page_rows_min": 5, **settings}
    with exports_settings(spool_dir=desk / host, **small):
        yield


def plan_on(host: str, desk: Path) -> str:
    with on(host, desk):
        task_id = pipeline.submit(*DAYS)
        steps.run_slice(Step.PLAN, lambda held: plan.plan_task(held) and None)
    return task_id


def claim(task_id: str) -> Claim | NoClaim:
    request, ref = store().request(task_id), store().ref(task_id)
    assert request is not None and ref is not None
    return steps.claim_step(ref, request, Step.SHARD)


def read_one_shard() -> None:
    with exports_settings(slice_ms=0):
        steps.run_slice(Step.SHARD, shard.fetch_shard)


def test_a_spool_keeps_its_name_and_another_has_another(tmp_path: Path) -> None:
    names = [FolderSpool(tmp_path / host).id for host in ("a", "b", "a")]
    assert names[0] == names[2] != names[1]
    assert (tmp_path / "a" / "id").read_text() == names[0]
    assert not list((tmp_path / "a").glob(".*"))


@pytest.mark.usefixtures("orders")
def test_only_workers_on_its_spool_claim_the_steps_of_a_task(desk: Path) -> None:
    task_id = plan_on("a", desk)
    with on("b", desk):
        assert store().next_tasks(Step.SHARD, 10, spool=storage.spool().id) == []
        assert claim(task_id) == NoClaim("elsewhere")
        steps.run_slice(Step.SHARD, shard.fetch_shard)
        assert pipeline.view(task_id).processed == 0
    with on("a", desk):
        assert pipeline.view(task_id).spool == storage.spool().id
        assert isinstance(claim(task_id), Claim)


@pytest.mark.usefixtures("orders")
def test_hints_of_a_task_wake_the_workers_of_its_spool(desk: Path) -> None:
    plan_on("a", desk)
    with on("a", desk):
        here = storage.spool().id
    with on("b", desk):
        there = storage.spool().id
        sweep.top_up_hints()
    assert hints.count_waiting([here])["normal"] + hints.count_waiting([here])["fast"] >= 1
    assert {name for name, count in hints.count_waiting([there]).items() if count} == {"plan"}


@pytest.mark.usefixtures("orders")
def test_a_spool_whose_workers_do_not_come_back_ends_its_tasks(desk: Path, redis_db: "Redis[bytes]") -> None:
    task_id = plan_on("a", desk)
    redis_db.delete("export:workers")
    with on("b", desk, spool_wait_s=1):
        sweep.sweep(boot=True)
        assert pipeline.view(task_id).stranded and pipeline.view(task_id).state is State.RUNNING
        time.sleep(1.1)
        sweep.sweep(boot=True)
    failed = pipeline.view(task_id)
    assert failed.failure is not None
    assert (failed.state, failed.failure.code, failed.failure.retryable) == (State.FAILED, "spool_lost", True)


@pytest.mark.usefixtures("orders")
def test_a_spool_that_comes_back_in_time_keeps_its_tasks_and_a_later_loss_counts_anew(
    desk: Path, redis_db: "Redis[bytes]"
) -> None:
    task_id = plan_on("a", desk)
    with on("a", desk):
        here = storage.spool().id
    with on("b", desk, spool_wait_s=1):
        for _ in range(2):
            redis_db.delete("export:workers")
            sweep.sweep(boot=True)
            assert pipeline.view(task_id).stranded
            time.sleep(1.1)
            store().beat("a:w", WorkerSign("lanes", busy=False, spool=here, rss_mb=0))
            sweep.sweep(boot=True)
            assert not pipeline.view(task_id).stranded
    with on("a", desk):
        assert pipeline.work(task_id).state is State.SUCCEEDED


@pytest.mark.usefixtures("orders")
def test_a_task_of_a_lost_spool_goes_on_from_its_cursors_when_that_is_back_or_anew_elsewhere(
    desk: Path, redis_db: "Redis[bytes]"
) -> None:
    back, anew = plan_on("a", desk), plan_on("a", desk)
    with on("a", desk):
        read_one_shard()
        read_one_shard()
    redis_db.delete("export:workers")
    with on("b", desk, spool_wait_s=1):
        sweep.sweep(boot=True)
        time.sleep(1.1)
        sweep.sweep(boot=True)
        rows = {task_id: pipeline.view(task_id).processed for task_id in (back, anew)}
        assert all(rows.values()) and {pipeline.view(task_id).state for task_id in rows} == {State.FAILED}
        for task_id in rows:
            ref, request = store().ref(task_id), store().request(task_id)
            assert ref is not None and request is not None
            word = store().rerun(ref, digest=specify(request).digest(), from_scratch=task_id == anew)
            assert word == "ok"
        assert pipeline.work(anew).state is State.SUCCEEDED
    with on("a", desk):
        found = pipeline.work(back)
        assert (found.state, found.processed) == (State.SUCCEEDED, ROWS)
        assert storage.spool().task_ids() == [], "what the other host has ended is freed here too"


@pytest.mark.usefixtures("orders")
def test_what_another_host_cancels_is_freed_where_it_lies(desk: Path) -> None:
    task_id = plan_on("a", desk)
    with on("a", desk):
        read_one_shard()
    with on("b", desk):
        ref = store().ref(task_id)
        assert ref is not None
        store().cancel(ref)
        sweep.sweep(boot=True)
    with on("a", desk):
        assert storage.spool().task_ids() == [task_id]
        sweep.sweep(boot=True)
        assert storage.spool().task_ids() == []
