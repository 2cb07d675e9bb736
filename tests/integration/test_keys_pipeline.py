"""Whole exports of a table whose keys do not rise with time: the file, its proof, a kill, a failure, a dry run."""

import csv
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from exports import service
from exports.contracts import ExportRequest, Format, State
from exports.errors import StepBroken
from exports.messages import Language, failure_sentence
from exports.pipeline.estimate import estimate
from tests import keyed_orders, pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.integration.test_commands import run
from tests.integration.test_orders_kind_keys import DAY, DAYS, fill
from tests.keyed_orders import FlakyUuid
from tests.kinds import FlakyOrders
from tests.reliability.journeys import before_page
from tests.reliability.world import World, work

WINDOW = ("2026-09-14", "2026-09-15")


@pytest.fixture
def keys(desk: Path, orders_db: OrdersDatabase) -> Iterator[list[str]]:
    """All keys in order; two shards of 22 and 9 rows, in pages of at most 4."""
    keyed_orders.create(orders_db, FlakyUuid)
    with exports_settings(kinds=("tests.keyed_orders.FlakyUuid",), page_rows=4, page_rows_min=2):
        yield fill(orders_db, FlakyUuid)


def submit() -> str:
    return pipeline.submit(*WINDOW, kind="uuid")


def keys_in_file(task_id: str) -> list[str]:
    text = pipeline.read_file(task_id).decode("utf-8-sig")
    return [row[0] for row in csv.reader(io.StringIO(text, newline=""), strict=True)][1:]


def test_a_file_holds_every_uuid_once_in_order_and_proves_it(keys: list[str], orders_db: OrdersDatabase) -> None:
    task_id = submit()
    found = pipeline.work(task_id)
    assert (found.state, found.processed, found.warnings) == (State.SUCCEEDED, 31, ())
    assert keys_in_file(task_id) == keys
    shards = json.loads(service.read_manifest(task_id, principal=pipeline.ANN))["shards"]
    assert [(shard["firstKey"], shard["lastKey"]) for shard in shards] == [(keys[0], keys[21]), (keys[22], keys[30])]
    assert run("export_verify", task_id) == "verified: 31 rows in 2 shards, every byte\n"
    [late] = keyed_orders.new_keys(FlakyUuid, 1, seed=3)
    keyed_orders.insert(orders_db, FlakyUuid, [(late, found.created_at.replace(2026, 9, 14, 4))])
    with pytest.raises(SystemExit, match="1"):
        run("export_verify", task_id)


def test_a_kill_at_a_cursor_reads_no_committed_page_again(keys: list[str], desk: Path, redis_db: redis.Redis) -> None:
    world = World(desk, state=redis_db)

    def job(world: World) -> None:
        before_page(4, lambda: os.kill(os.getpid(), signal.SIGKILL))
        submit()
        work(world)

    assert world.run(job) == -signal.SIGKILL
    task_id = world.task_id
    assert pipeline.view(task_id).processed == 12
    assert pipeline.work(task_id).state is State.SUCCEEDED
    assert keys_in_file(task_id) == keys
    cursors = [cursor for shard_id, cursor, _ in FlakyOrders.reads if shard_id == str(DAY)]
    assert cursors[0].startswith(f"{keys[11]} @ 2026-09-14 ")


def test_a_failure_names_the_last_key_and_its_time(keys: list[str]) -> None:
    task_id = submit()

    def fail() -> None:
        raise StepBroken("a fault of the test")

    before_page(3, fail)
    failure = pipeline.work(task_id).failure
    assert failure is not None
    assert failure.cursor.startswith(f"{keys[7]} @ 2026-09-14 ")
    assert f"page 3 (after id {failure.cursor})" in failure_sentence(failure, Language.EN)


@pytest.mark.usefixtures("keys")
def test_a_dry_run_counts_and_samples() -> None:
    found = estimate(ExportRequest("uuid", "ann", "r", DAYS.first_day, DAYS.last_day, Format.CSV))
    assert (found.rows, found.issues, found.preview.rows) == (31, (), {"2026-09-14": 22, "2026-09-15": 9})
    assert found.size.low > 31 * 36
