"""The manifest beside each file: what it tells is true of the bytes, and it is there whenever the file is."""

import csv
import datetime as dt
import hashlib
import io
import itertools
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exports import service, storage
from exports.contracts import Column, Format, PersonalData, Shard, State
from exports.errors import StateConflict, StoreUnavailable, TaskGone
from exports.kinds.orders import OrdersKind, sample
from exports.pipeline import manifest, plan, render, steps
from exports.pipeline import shard as stage
from exports.state.store import store
from exports.storage.base import Source
from exports.storage.filesystem import FolderStore
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.kinds import FlakyOrders

FIRST = dt.date(2026, 9, 1)
WINDOW = ("2026-09-01", "2026-09-04")
"""Three days with orders, and one without."""


@pytest.fixture
def orders(desk: Path, sqlite_orders: OrdersDatabase) -> Iterator[OrdersDatabase]:
    sqlite_orders.insert_rows(sample.generate(700, seed=1, days=3, first_day=FIRST))
    with exports_settings(page_rows=100, page_rows_min=50):
        yield sqlite_orders


def export(output: Format = Format.CSV, kind: str = "orders") -> str:
    task_id = pipeline.submit(*WINDOW, output=output, kind=kind)
    assert pipeline.work(task_id).state is State.SUCCEEDED
    return task_id


def read(task_id: str) -> Any:
    return json.loads(service.read_manifest(task_id, principal=pipeline.ANN))


def bytes_of(shard: Any, data: bytes) -> bytes:
    return b"".join(data[run["offset"] : run["offset"] + run["length"]] for run in shard["ranges"])


@pytest.mark.parametrize("output", list(Format))
@pytest.mark.parametrize("sheet_rows", [1_048_576, 150])
def test_each_shard_is_found_by_its_ranges_and_has_its_digest(
    orders: OrdersDatabase, output: Format, sheet_rows: int
) -> None:
    with exports_settings(page_rows=100, page_rows_min=50, sheet_rows=sheet_rows):
        task_id = export(output)
    data, found = pipeline.read_file(task_id), read(task_id)
    assert found["file"] == {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert [shard["shardId"] for shard in found["shards"]] == [f"2026-09-0{day}" for day in (1, 2, 3, 4)]
    for shard in found["shards"]:
        assert hashlib.sha256(bytes_of(shard, data)).hexdigest() == shard["sha256"]
    runs = [(run["offset"], run["length"]) for shard in found["shards"] for run in shard["ranges"]]
    assert all(sum(one) <= other[0] for one, other in itertools.pairwise(runs))


def test_a_shards_bytes_in_an_xlsx_are_its_rows_also_of_a_page_that_two_sheets_share(orders: OrdersDatabase) -> None:
    with exports_settings(page_rows=100, page_rows_min=50, sheet_rows=150):
        task_id = export(Format.XLSX)
    data, found = pipeline.read_file(task_id), read(task_id)
    for shard in found["shards"]:
        rows = zlib.decompressobj(-zlib.MAX_WBITS).decompress(bytes_of(shard, data))
        assert (rows.count(b"</row>"), len(rows)) == (shard["rows"], shard["bytes"])


def test_a_shards_bytes_in_a_csv_are_its_records_and_nothing_else(orders: OrdersDatabase) -> None:
    task_id = export()
    data = pipeline.read_file(task_id)
    ids: list[str] = []
    for shard in read(task_id)["shards"]:
        assert len(shard["ranges"]) == (1 if shard["rows"] else 0)
        records = list(csv.reader(io.StringIO(bytes_of(shard, data).decode(), newline=""), strict=True))
        assert len(records) == shard["rows"] == shard["planned"]
        assert shard["bytes"] == len(bytes_of(shard, data))
        if records:
            assert (shard["firstKey"], shard["lastKey"]) == (records[0][0], records[-1][0])
        ids += [record[0] for record in records]
    assert len(ids) == len(set(ids)) == 700


def test_rows_pages_keys_and_totals_are_told(orders: OrdersDatabase) -> None:
    task_id = export()
    found, view = read(task_id), pipeline.view(task_id)
    assert (found["rows"], found["bytes"]) == (700, sum(shard["bytes"] for shard in found["shards"]))
    assert (found["taskId"], found["kind"], found["format"], found["zone"]) == (
        task_id,
        "orders",
        "csv",
        "Asia/Shanghai",
    )
    assert (found["from"], found["to"]) == WINDOW
    assert dt.datetime.fromisoformat(found["asOf"]) == view.as_of
    text = json.dumps(found["specification"], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert hashlib.sha256(text.encode()).hexdigest() == found["specificationSha256"]
    first, *_, empty = found["shards"]
    assert first["pageRows"] == {"smallest": first["rows"] % 100, "largest": 100}
    assert (first["attempts"], first["drift"]) == (1, {"kind": "exact", "difference": 0})
    assert (empty["firstKey"], empty["lastKey"], empty["rows"], empty["ranges"]) == (None, None, 0, [])
    assert (empty["attempts"], empty["pageRows"]) == (0, {"smallest": 0, "largest": 0})


def test_drift_and_the_claims_of_a_shard_are_told(orders: OrdersDatabase) -> None:
    def lose_rows_once(shard: Shard, cursor: str, _limit: int) -> None:
        if shard.id == "2026-09-02" and cursor and not lost:
            lost.append(orders.execute(f"DELETE FROM orders WHERE id = {int(cursor) + 1}"))
            raise MemoryError

    lost: list[object] = []
    FlakyOrders.before_read.append(lose_rows_once)
    found = read(export())["shards"][1]
    assert found["drift"] == {"kind": "changed", "difference": -1}
    assert found["rows"] == found["planned"] - 1
    assert found["pageRows"]["largest"] == 100


def test_rendering_twice_gives_the_same_manifest(orders: OrdersDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def render_twice(held: steps.Holding) -> None:
        segments = render.ordered(store().segments(held.claim.ref.id))
        pages = render.check_segments(held, segments)
        texts.extend(render.build_recipe(held, segments, pages).manifest for _ in range(2))

    monkeypatch.setattr(render, "render_task", render_twice)
    pipeline.submit(*WINDOW)
    plan.plan.fn()
    stage.shard.fn()
    assert len(texts) >= 2
    assert len(set(texts)) == 1
    assert manifest.load(texts[0].encode()).dump() == texts[0]


def test_a_task_is_published_only_with_its_manifest(orders: OrdersDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    real = FolderStore.put

    def put(self: FolderStore, key: str, source: Source, **record: Any) -> None:
        if key.endswith(".json"):
            raise StoreUnavailable("as if the disk were gone")
        real(self, key, source, **record)

    monkeypatch.setattr(FolderStore, "put", put)
    with exports_settings(retry_delays_ms=()):
        task_id = pipeline.submit(*WINDOW)
        assert pipeline.work(task_id).state is State.FAILED
    with pytest.raises(StateConflict):
        service.read_manifest(task_id, principal=pipeline.ANN)


def test_a_manifest_goes_with_its_file(orders: OrdersDatabase) -> None:
    task_id = export()
    storage.artifacts().delete(task_id)
    with pytest.raises(TaskGone):
        service.read_manifest(task_id, principal=pipeline.ANN)


def test_keys_that_are_personal_data_stand_in_no_manifest(
    orders: OrdersDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = OrdersKind.columns
    secret = Column(first.name, first.zh, first.en, first.type, personal=PersonalData.NAME)
    monkeypatch.setattr(OrdersKind, "columns", (secret, *others))
    found = read(export())
    assert found["snapshot"]["bounds"] == ""
    assert {(shard["firstKey"], shard["lastKey"], shard["bounds"]) for shard in found["shards"]} == {(None, None, "")}
    assert found["rows"] == 700
