"""The pipeline with its spool in the bucket: real stages, a real server, and a proxy that fails calls."""

import datetime as dt
import io
import random
import time
import uuid
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config.demo.object_store import BUCKET
from exports import service, storage
from exports.conf import conf
from exports.contracts import Format, Principal, Right, Shard
from exports.errors import StepBroken
from exports.kinds.orders import sample
from exports.messages import Language, failure_sentence
from exports.pipeline import manifest, plan, purging, sweep
from tests import pipeline, services
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.kinds import FlakyOrders
from tests.pipeline import ANN, submit, work
from tests.s3_proxy import INTERNAL, LOST_REPLY, PUT, SLOW_DOWN, Call, Fault, S3Proxy

BOSS = Principal("boss", frozenset(Right))
WINDOW = ("2026-09-01", "2026-09-03")
DAYS, PAGES = 3, 9


@pytest.fixture
def prefix(desk: Path, s3: services.S3, proxy: S3Proxy, sqlite_orders: OrdersDatabase) -> Iterator[str]:
    """A place of its own in the bucket, 700 orders of three days in nine pages, and the pipeline set to both."""
    sqlite_orders.insert_rows(sample.generate(700, seed=1, days=3, first_day=dt.date(2026, 9, 1)))
    prefix = f"spool/{uuid.uuid4().hex}"
    with exports_settings(spool="s3", page_rows=100, page_rows_min=50, **s3.settings(prefix=prefix, url=proxy.url)):
        yield prefix


def spooled(s3: services.S3, prefix: str) -> list[str]:
    """All that lies in the spool, without the task."""
    return [name.partition("/")[2] for name in s3.objects(f"{prefix}/spool") if name != "identity"]


def in_store(s3: services.S3, prefix: str) -> set[str]:
    return {name for name in s3.objects(prefix) if not name.startswith("spool/") and name != "identity"}


def quiet(proxy: S3Proxy) -> None:
    """Nothing is left to do, and no call counts that was made for it."""
    proxy.forget()
    sweep.clean_up()
    proxy.forget()


def members(data: bytes) -> dict[str, bytes]:
    """What must be equal in two workbooks of two tasks."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        return {name: book.read(name) for name in book.namelist() if name != "docProps/core.xml"}


@pytest.mark.parametrize(("output", "parts"), [(Format.CSV, bytes), (Format.XLSX, members)])
def test_the_file_is_the_one_of_a_folder_and_the_spool_is_empty_behind_it(
    prefix: str, s3: services.S3, output: Format, parts: Callable[[bytes], object]
) -> None:
    data = pipeline.export(*WINDOW, output=output)
    sweep.clean_up()
    assert spooled(s3, prefix) == []
    with exports_settings(spool="folder"):
        assert parts(pipeline.export(*WINDOW, output=output)) == parts(data)


def test_a_piece_is_a_page_named_by_its_claim_and_where_it_begins(prefix: str, s3: services.S3) -> None:
    found: list[str] = []
    FlakyOrders.before_recount.append(lambda _: found.extend(set(spooled(s3, prefix)) - set(found)))
    pipeline.export(*WINDOW)
    assert "made" in found
    pieces = [name.partition("/") for name in found if name != "made"]
    assert len(pieces) == PAGES
    segments = {segment for segment, _, _ in pieces}
    assert {segment[:10] for segment in segments} == {"2026-09-01", "2026-09-02", "2026-09-03"}
    assert {(segment, "0" * 15) for segment in segments} < {(segment, offset) for segment, _, offset in pieces}


def test_a_page_that_is_not_taken_or_not_answered_for_is_read_again_and_in_the_file_once(
    prefix: str, proxy: S3Proxy
) -> None:
    expected = pipeline.export(*WINDOW)
    FlakyOrders.reads.clear()
    task_id = submit(*WINDOW)
    plan.plan.fn()
    proxy.fail(PUT, SLOW_DOWN)
    proxy.fail(PUT, LOST_REPLY)
    assert work(task_id).state == "succeeded"
    assert pipeline.read_file(task_id) == expected
    assert len(FlakyOrders.reads) == PAGES + DAYS + 2  # a shard ends with an empty page


@pytest.mark.parametrize("most", [2, pytest.param(1000, marks=[pytest.mark.soak, pytest.mark.timeout(900)])])
def test_each_call_to_the_store_may_fail_or_lose_its_answer(prefix: str, proxy: S3Proxy, most: int) -> None:
    """From plan to publish; a sample of them, seeded by pytest-randomly."""
    expected = pipeline.export(*WINDOW)
    quiet(proxy)
    work(submit(*WINDOW))
    calls = len(proxy.calls)
    quiet(proxy)
    for number in random.sample(range(1, calls + 1), min(most, calls)):
        for fault in (INTERNAL, LOST_REPLY):
            proxy.decide = lambda _, number=number, fault=fault: fault if len(proxy.calls) == number else None
            task_id = submit(*WINDOW)
            assert work(task_id).state == "succeeded", (number, fault)
            quiet(proxy)
            assert pipeline.read_file(task_id) == expected, (number, fault)
            quiet(proxy)


@pytest.mark.parametrize(("taken", "told"), [(0, "planning failed: "), (3, "fetch failed on 2026-09-01, page 3 (")])
def test_a_store_that_stays_away_fails_the_task_at_its_page_and_a_rerun_goes_on_there(
    prefix: str, proxy: S3Proxy, taken: int, told: str
) -> None:
    """The first object is the place that plan makes, each other one a page."""
    sweep.sweep(boot=True)  # writes to whom the bucket belongs, before or behind the plan
    proxy.forget()
    proxy.decide = lambda call: INTERNAL if call.name == PUT and proxy.count(PUT) > taken else None
    with exports_settings(leases_per_task=1):
        task_id = submit(*WINDOW)
        found = work(task_id)
    assert found.failure is not None
    assert failure_sentence(found.failure, Language.EN).startswith(told)
    assert (found.state, found.failure.code) == ("failed", "store_unavailable")
    assert (found.failure.attempts, found.failure.retryable) == (4, True)
    proxy.forget()
    FlakyOrders.reads.clear()
    service.rerun(task_id, principal=BOSS)
    assert work(task_id).state == "succeeded"
    assert len(FlakyOrders.reads) == PAGES - max(0, taken - 1) + DAYS


@pytest.mark.parametrize(("harm", "moment"), [("gone", "before render"), ("flipped", "before upload")])
def test_a_piece_that_is_damaged_is_read_again(
    prefix: str, s3: services.S3, proxy: S3Proxy, harm: str, moment: str
) -> None:
    expected = pipeline.export(*WINDOW)
    sweep.clean_up()
    proxy.forget()
    damaged: list[str] = []

    def damage() -> None:
        if not damaged:
            damaged.extend([name for name in s3.objects(f"{prefix}/spool") if "/2026-09-02" in name][:1])
            where = {"Bucket": BUCKET, "Key": f"{prefix}/spool/{damaged[0]}"}
            body = s3.client().get_object(**where)["Body"].read()
            s3.client().delete_object(**where)
            if harm == "flipped":
                s3.client().put_object(**where, Body=b"x" + body[1:])

    def damage_at_the_recipe(call: Call) -> Fault | None:
        if call.name == PUT and proxy.count(PUT) == 1 + PAGES + 1:
            damage()
        return None

    if moment == "before render":
        FlakyOrders.before_recount.append(lambda shard_id: damage() if shard_id == "2026-09-03" else None)
    else:
        proxy.decide = damage_at_the_recipe
    FlakyOrders.reads.clear()
    assert pipeline.export(*WINDOW) == expected
    assert (len(damaged), len(FlakyOrders.reads)) == (1, PAGES + DAYS + PAGES // DAYS + 1)


def test_a_cancel_calls_no_store_and_the_sweep_empties_the_spool(prefix: str, s3: services.S3, proxy: S3Proxy) -> None:
    def break_the_last_day(shard: Shard, cursor: str, limit: int) -> None:
        if shard.id == "2026-09-03":
            raise StepBroken

    FlakyOrders.before_read.append(break_the_last_day)
    task_id = submit(*WINDOW)
    assert work(task_id).state == "failed"
    before = len(proxy.calls)
    for _ in range(2):
        assert service.cancel(task_id, principal=ANN).state == "cancelled"
    assert len(proxy.calls) == before
    assert spooled(s3, prefix) != []
    sweep.clean_up()
    assert (spooled(s3, prefix), in_store(s3, prefix)) == ([], set())
    before = len(proxy.calls)
    sweep.clean_up()
    assert len(proxy.calls) == before  # with nothing to do, the bucket is not even listed


def test_pieces_that_a_zombie_leaves_behind_the_end_go_when_its_lease_is_over(prefix: str, s3: services.S3) -> None:
    with exports_settings(lease_ms=500):
        _leave_a_piece(prefix, s3)


def _leave_a_piece(prefix: str, s3: services.S3) -> None:
    task_id = submit(*WINDOW)
    found = work(task_id)
    sweep.clean_up()
    s3.client().put_object(Bucket=BUCKET, Key=f"{prefix}/spool/{task_id}/a-1-x/{0:015d}", Body=b"late")
    deadline = time.monotonic() + conf().lease_ms / 1000 + 30
    while spooled(s3, prefix):
        assert time.monotonic() < deadline
        sweep.clean_up()
        time.sleep(0.1)
    assert in_store(s3, prefix) == set(manifest.objects(found.object_key))


def test_pieces_of_an_unknown_task_go_when_they_are_old_and_the_spool_is_ours(
    prefix: str, s3: services.S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = "exp_01J00000000000000000000000"
    assert purging.purge(dry_run=False).refusal == ""
    s3.client().put_object(Bucket=BUCKET, Key=f"{prefix}/spool/{old}/a-1-x/{0:015d}", Body=b"left")
    found = purging.purge(dry_run=False)
    assert (found.unknown, found.kept) == ({"spool": (), "store": ()}, {"spool": (old,), "store": ()})
    later = time.time() + 8 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    identity = storage.spool().read_identity()
    storage.spool().write_identity("another")
    assert purging.purge(dry_run=False).refusal == "the spool belongs to another Redis"
    assert len(spooled(s3, prefix)) == 1
    storage.spool().write_identity(identity)
    assert purging.purge(dry_run=False).unknown["spool"] == (old,)
    assert spooled(s3, prefix) == []
