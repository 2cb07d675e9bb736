"""`export_verify` over real files and a real table: it holds, or names what differs."""

import datetime as dt
import io
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from exports.conf import conf
from exports.contracts import Format, State
from exports.kinds.orders import sample
from exports.pipeline import manifest
from tests import pipeline, services
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.integration.test_commands import run, run_json

WINDOW = ("2026-09-01", "2026-09-04")
SECOND = "2026-09-02"


@pytest.fixture
def orders(desk: Path, orders_db: OrdersDatabase) -> Iterator[OrdersDatabase]:
    orders_db.insert_rows(sample.generate(700, seed=1, days=3, first_day=dt.date(2026, 9, 1)))
    with exports_settings(page_rows=100, page_rows_min=50):
        yield orders_db


def export(output: Format = Format.CSV, kind: str = "orders") -> str:
    task_id = pipeline.submit(*WINDOW, output=output, kind=kind)
    assert pipeline.work(task_id).state is State.SUCCEEDED
    return task_id


def told(task_id: str) -> tuple[str, Any]:
    """What the command prints, for people and for programs; both end with exit code 1."""
    texts = []
    for options in ([], ["--json"]):
        out = io.StringIO()
        with pytest.raises(SystemExit, match="1"):
            call_command("export_verify", task_id, *options, stdout=out)
        texts.append(out.getvalue())
    return texts[0], json.loads(texts[1])


def faults(found: Any) -> dict[str, list[str]]:
    return {shard["shardId"]: shard["faults"] for shard in found["shards"] if shard["faults"]}


def file_of(task_id: str) -> Path:
    return conf().store_dir / pipeline.view(task_id).object_key


def middle_key(task_id: str) -> int:
    """The second key of the second day."""
    text = Path(f"{file_of(task_id)}.manifest.json").read_text("utf-8")
    return int(json.loads(text)["shards"][1]["firstKey"]) + 1


@pytest.mark.parametrize("output", list(Format))
def test_an_untouched_file_holds(orders: OrdersDatabase, output: Format) -> None:
    with exports_settings(page_rows=100, page_rows_min=50, sheet_rows=150):
        task_id = export(output)
    assert run("export_verify", task_id) == "verified: 700 rows in 4 shards, every byte\n"
    found = run_json("export_verify", task_id)
    assert (found["holds"], found["faults"], faults(found)) == (True, [], {})
    assert all(shard["rows"] == shard["rowsNow"] for shard in found["shards"])


def test_rows_that_came_later_change_nothing(orders: OrdersDatabase) -> None:
    task_id = export()
    [[largest]] = orders.execute("SELECT max(id) FROM orders")
    orders.add(int(str(largest)) + 1, created_at=dt.datetime(2026, 9, 2, 4, tzinfo=dt.UTC))
    assert "verified" in run("export_verify", task_id)


def test_a_shard_with_fewer_rows_now_is_named(orders: OrdersDatabase) -> None:
    task_id = export()
    orders.execute(f"DELETE FROM orders WHERE id = {middle_key(task_id)}")
    text, found = told(task_id)
    assert faults(found) == {SECOND: ["rows"]}
    [shard] = [shard for shard in found["shards"] if shard["faults"]]
    assert shard["rowsNow"] == shard["rows"] - 1
    assert text == f"{SECOND}: the database has {shard['rowsNow']} rows, the file {shard['rows']}\n"


def test_as_many_rows_with_another_key_are_told(orders: OrdersDatabase) -> None:
    task_id = export()
    key = middle_key(task_id)
    orders.execute(f"UPDATE orders SET created_at = '2026-01-01 00:00:00' WHERE id = {key}")
    [[moved]] = orders.execute("SELECT max(id) FROM orders")
    orders.execute(f"UPDATE orders SET created_at = '2026-09-02 04:00:00' WHERE id = {moved}")
    text, found = told(task_id)
    assert faults(found)[SECOND] == ["keys"]
    assert f"{SECOND}: the database has as many rows, but other ones\n" in text


@pytest.mark.parametrize("output", list(Format))
def test_a_damaged_byte_names_its_shard(orders: OrdersDatabase, output: Format) -> None:
    task_id = export(output)
    path = file_of(task_id)
    [run_] = json.loads(Path(f"{path}.manifest.json").read_text("utf-8"))["shards"][1]["ranges"]
    data = bytearray(path.read_bytes())
    data[run_["offset"] + 10] ^= 1
    path.write_bytes(data)
    text, found = told(task_id)
    assert (found["faults"], faults(found)) == (["file"], {SECOND: ["bytes"]})
    assert text.splitlines() == [
        "the file has other bytes than were published",
        f"{SECOND}: its bytes in the file are damaged",
    ]


def test_a_damaged_header_is_the_file_and_no_shard(orders: OrdersDatabase) -> None:
    task_id = export()
    data = bytearray(file_of(task_id).read_bytes())
    data[5] ^= 1
    file_of(task_id).write_bytes(data)
    _, found = told(task_id)
    assert (found["faults"], faults(found)) == (["file"], {})


@pytest.mark.parametrize("change", [-1000, 3])
def test_a_file_of_another_length_is_told(orders: OrdersDatabase, change: int) -> None:
    task_id = export()
    data = file_of(task_id).read_bytes()
    file_of(task_id).write_bytes(data[:change] if change < 0 else data + b"x" * change)
    _, found = told(task_id)
    assert (found["faults"], faults(found)) == (["file"], {"2026-09-03": ["bytes"]} if change < 0 else {})


def test_a_manifest_of_another_file_proves_nothing(orders: OrdersDatabase) -> None:
    task_id, other = export(), export(Format.XLSX)
    text = Path(f"{file_of(other)}.manifest.json").read_bytes()
    Path(f"{file_of(task_id)}.manifest.json").write_bytes(text)
    _, found = told(task_id)
    assert "manifest" in found["faults"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"shards": 3}'])
def test_a_damaged_manifest_is_said(orders: OrdersDatabase, text: str) -> None:
    task_id = export()
    Path(f"{file_of(task_id)}.manifest.json").write_text(text)
    with pytest.raises(CommandError, match="the manifest is damaged"):
        run("export_verify", task_id)


def test_what_cannot_be_verified_is_refused(orders: OrdersDatabase) -> None:
    with pytest.raises(CommandError, match="There is no such task"):
        run("export_verify", "exp_nobody")
    queued = pipeline.submit(*WINDOW)
    with pytest.raises(CommandError, match="The task is queued; it has no file"):
        run("export_verify", queued)
    task_id = export()
    for name in manifest.objects(pipeline.view(task_id).object_key):
        (conf().store_dir / name).unlink()
    with pytest.raises(CommandError, match="kept no longer"):
        run("export_verify", task_id)


def test_a_file_in_a_bucket_is_verified_in_place(desk: Path, s3: services.S3) -> None:
    with exports_settings(**s3.settings(prefix=f"verify/{uuid.uuid4().hex}")):
        task_id = export(kind="bulk")
        assert run("export_verify", task_id) == "verified: 368 rows in 4 shards, every byte\n"
