"""What `/metrics` tells of real tasks: everything counted once, where it happens; names and labels as documented."""

from pathlib import Path

import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families

import exports
from exports import service
from exports.api.metrics import exposition, registry
from exports.contracts import Shard, Step
from exports.errors import PageTooLarge, RequestConflict, SourceUnavailable
from exports.pipeline import steps, sweep, workers
from exports.state.replies import Claim
from exports.state.store import store
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.kinds import FlakyOrders
from tests.unit.test_monitoring import documented

DAYS = ("2026-09-14", "2026-09-15")


@pytest.fixture(autouse=True)
def orders(desk: Path, sqlite_orders: OrdersDatabase) -> OrdersDatabase:
    """30 orders on the first of the two days and one on the second."""
    sqlite_orders.insert({"id": number, "created_at": utc(f"2026-09-14 04:00:{number:02d}")} for number in range(1, 31))
    sqlite_orders.add(31, created_at=utc("2026-09-15 04:00:00"))
    return sqlite_orders


def samples() -> dict[tuple[str, ...], float]:
    """(sample, label value …) → value, of our own metrics; those that are 0 are left out."""
    families = text_string_to_metric_families(exposition().decode())
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
        if sample.name.startswith("export_") and sample.value
    }


def grown(before: dict[tuple[str, ...], float], *prefixes: str) -> dict[tuple[str, ...], float]:
    """What has changed since, of metrics with these prefixes."""
    return {
        name: value - before.get(name, 0)
        for name, value in samples().items()
        if name[0].startswith(prefixes) and value != before.get(name, 0)
    }


def test_every_metric_is_documented_with_its_type_and_labels_and_no_other_is() -> None:
    pipeline.export(*DAYS)
    workers.current().group = "lanes"
    workers.current().beat()
    shown = {}
    for family in registry.collect():
        suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        shown[family.name + suffix] = ("gauge" if family.type == "info" else family.type, sorted(labels))
    assert shown == {name: (kind, sorted(labels)) for name, (kind, labels) in documented().items()}


def test_submits_that_find_their_task_are_counted_and_conflicts_are_not() -> None:
    before = samples()
    for _ in range(3):
        pipeline.submit(*DAYS, request_id="r1")
    with pytest.raises(RequestConflict):
        pipeline.submit(DAYS[0], DAYS[0], request_id="r1")
    pipeline.submit(*DAYS, request_id="r2")
    assert grown(before, "export_idem") == {("export_idempotency_hits_total",): 2}


def test_what_is_tried_again_is_counted_by_its_cause() -> None:
    faults = [SourceUnavailable("database_timeout"), SourceUnavailable("replica_conflict"), PageTooLarge()]

    def fault(_shard: Shard, _cursor: str, _limit: int) -> None:
        if faults:
            raise faults.pop()

    FlakyOrders.before_read.append(fault)
    before = samples()
    pipeline.export(*DAYS)
    assert grown(before, "export_retries", "export_recov") == {
        ("export_retries_total", "database_timeout"): 1,
        ("export_retries_total", "replica_conflict"): 1,
        ("export_retries_total", "page_too_large"): 1,
    }


def test_segments_that_are_read_again_are_counted(desk: Path) -> None:
    task_id = pipeline.submit(*DAYS)
    lost: list[Path] = []

    def lose(shard_id: str) -> None:
        if shard_id == DAYS[1] and not lost:
            lost.extend((desk / "spool" / "tasks" / task_id).glob(f"{DAYS[0]}-*"))
            for path in lost:
                path.unlink()

    FlakyOrders.before_recount.append(lose)
    before = samples()
    assert pipeline.work(task_id).state == "succeeded"
    assert lost
    assert grown(before, "export_retries") == {("export_retries_total", "spool_lost"): 1}


def test_pages_are_timed_once_each_and_only_committed_ones() -> None:
    before = samples()
    with exports_settings(page_rows=10, page_rows_min=5):
        pipeline.export(*DAYS)
    found = grown(before, "export_page_duration_seconds", "export_rows")
    assert found[("export_page_duration_seconds_count",)] == 4
    assert found[("export_rows_processed_total",)] == 31
    assert found[("export_page_duration_seconds_bucket", "+Inf")] == 4
    assert found[("export_page_duration_seconds_bucket", "10.0")] == 4


def test_drift_is_counted_in_rows_and_shards(orders: OrdersDatabase) -> None:
    FlakyOrders.before_recount.append(
        lambda shard_id: orders.execute("DELETE FROM orders WHERE id <= 3") if shard_id == DAYS[0] else None
    )
    before = samples()
    pipeline.export(*DAYS)
    assert grown(before, "export_rows_drifted", "export_shards_drifted") == {
        ("export_rows_drifted_total",): 3,
        ("export_shards_drifted_total", "changed"): 1,
    }


def test_a_step_that_is_taken_back_is_counted_once() -> None:
    task_id = pipeline.submit(*DAYS)
    ref = store().ref(task_id)
    assert ref is not None
    assert isinstance(steps.claim_step(ref, pipeline.view(task_id).request, Step.PLAN), Claim)
    [lease] = store().leases([task_id])[task_id]
    before = samples()
    words = [store().recover(ref, lease, proven=True, counted=True) for _ in range(2)]
    assert words == ["ok", "lost"]
    assert grown(before, "export_recov") == {("export_recoveries_total", "plan"): 1}


def test_gauges_tell_the_present(redis_db: "redis.Redis[bytes]", desk: Path) -> None:
    waiting = pipeline.submit(*DAYS)
    pipeline.submit(*DAYS)
    redis_db.zincrby("export:index:queued", -90_000, waiting)
    found = samples()
    assert found[("export_tasks", "queued")] == 2
    assert 90 <= found[("export_oldest_queued_seconds",)] < 120
    [build] = [name for name in found if name[0] == "export_build_info"]
    assert exports.__version__ in build and found[build] == 1


def test_the_spool_is_measured_once_a_minute_by_whoever_sweeps(redis_db: "redis.Redis[bytes]", desk: Path) -> None:
    assert ("export_spool_bytes",) not in samples()
    folder = desk / "spool" / "tasks" / "exp_1"
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(b"x" * 1000)
    (folder / "b").write_bytes(b"x" * 500)
    sweep.measure_spool()
    (folder / "c").write_bytes(b"x" * 9)
    sweep.measure_spool()
    found = samples()
    assert found[("export_spool_bytes",)] == 1500 and found[("export_spool_free_bytes",)] > 0
    redis_db.pexpire("export:spool", 50_000)
    sweep.measure_spool()
    assert samples()[("export_spool_bytes",)] == 1509


def test_a_cause_that_is_no_error_code_makes_no_label(redis_db: "redis.Redis[bytes]") -> None:
    redis_db.hincrby("export:metrics", "retries:from a newer version", 1)
    assert not [name for name in samples() if name[0] == "export_retries_total"]
    assert service.read_counters().retries == {"from a newer version": 1}
