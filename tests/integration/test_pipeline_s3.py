"""The pipeline over S3: 11 MB in three parts through the real stages, a real server, and a proxy that fails calls."""

import hashlib
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exports import service, storage
from exports.conf import conf
from exports.contracts import Principal, Right
from exports.pipeline import manifest, plan, purging, render, shard, sweep, upload
from exports.views import TaskView
from tests import services
from tests.conftest import exports_settings
from tests.kinds import BulkKind
from tests.pipeline import ANN, submit, view, work
from tests.s3_proxy import ABORT, COMPLETE, CREATE, INTERNAL, PART, Call, Fault, S3Proxy

BOSS = Principal("boss", frozenset(Right))
PARTS = [1, 2, 3]


@pytest.fixture
def prefix(desk: Path, s3: services.S3, proxy: S3Proxy) -> Iterator[str]:
    """A place of its own in the bucket, and the pipeline set to it."""
    BulkKind.version[:] = ["v1"]
    prefix = f"pipeline/{uuid.uuid4().hex}"
    with exports_settings(**s3.settings(prefix=prefix, url=proxy.url)):
        yield prefix


def bulk() -> str:
    return submit("2026-09-01", "2026-09-01", kind="bulk")


def sha256_of(task_id: str) -> str:
    artifact = service.open_file(task_id, principal=ANN)
    return hashlib.sha256(b"".join(artifact.read(0, artifact.size))).hexdigest()


def rerun(task_id: str, *, from_scratch: bool = False) -> TaskView:
    service.rerun(task_id, principal=BOSS, from_scratch=from_scratch)
    return work(task_id)


def only_the_file(s3: services.S3, prefix: str, found: TaskView) -> bool:
    objects = s3.objects(prefix)
    objects.pop("identity", None)
    assert objects.pop(manifest.key(found.object_key)) > 0
    return objects == {found.object_key: found.file_size} and s3.open_uploads(prefix) == []


def test_a_file_goes_to_the_bucket_in_parts_and_comes_back_by_a_link(
    prefix: str, s3: services.S3, proxy: S3Proxy
) -> None:
    known_before: list[str] = []
    task_id = bulk()

    def note(call: Call) -> Fault | None:
        if call.name == CREATE:
            known_before.append(view(task_id).object_key)
        return None

    proxy.decide = note
    found = work(task_id)
    assert found.state == "succeeded"
    assert sorted(proxy.parts()) == PARTS
    assert known_before == [found.object_key]
    assert sha256_of(task_id) == found.sha256
    assert only_the_file(s3, prefix, found)
    link = service.open_file(task_id, principal=ANN).link("attachment")
    assert link is not None
    with urllib.request.urlopen(link, timeout=30) as answer:
        assert hashlib.sha256(answer.read()).hexdigest() == found.sha256


def test_a_part_that_fails_for_good_fails_the_task_and_a_rerun_sends_that_part_alone(
    prefix: str, s3: services.S3, proxy: S3Proxy
) -> None:
    """H109"""
    proxy.decide = lambda call: INTERNAL if call == Call(PART, 2) else None
    task_id = bulk()
    found = work(task_id)
    assert found.failure is not None
    assert (found.state, found.phase, found.failure.code) == ("failed", "upload", "store_unavailable")
    assert (found.failure.page, found.failure.attempts, found.failure.retryable) == (2, 4, True)
    assert sorted(proxy.parts()) == [1, 2, 2, 2, 2, 3]
    proxy.forget()
    found = rerun(task_id)
    assert (found.state, proxy.parts()) == ("succeeded", [2])
    assert (proxy.count(CREATE), proxy.count(COMPLETE)) == (0, 1)
    assert sha256_of(task_id) == found.sha256
    assert only_the_file(s3, prefix, found)


def test_a_rerun_that_renders_other_bytes_never_mixes_parts(prefix: str, s3: services.S3, proxy: S3Proxy) -> None:
    proxy.decide = lambda call: INTERNAL if call == Call(PART, 3) else None
    task_id = bulk()
    first = work(task_id)
    assert first.state == "failed"
    proxy.forget()
    BulkKind.version[:] = ["v2"]
    found = rerun(task_id, from_scratch=True)
    assert (found.state, sorted(proxy.parts())) == ("succeeded", PARTS)
    assert found.sha256 != first.sha256
    assert sha256_of(task_id) == found.sha256
    assert only_the_file(s3, prefix, found)


def test_a_spool_that_was_damaged_behind_the_render_is_read_again_and_nothing_wrong_is_stored(
    prefix: str, s3: services.S3, proxy: S3Proxy
) -> None:
    proxy.decide = lambda call: INTERNAL if call.name == COMPLETE else None
    task_id = bulk()
    assert work(task_id).state == "failed"
    segment = max(storage.spool().folder(task_id).glob("a-*[!s]"), key=lambda path: path.stat().st_size)
    data = bytearray(segment.read_bytes())
    data[1000] ^= 1
    segment.write_bytes(data)
    proxy.forget()
    found = rerun(task_id)
    assert found.state == "succeeded"
    assert sha256_of(task_id) == found.sha256
    assert only_the_file(s3, prefix, found)


@pytest.mark.parametrize("number", [1, 3])
def test_a_cancel_during_the_upload_leaves_no_object_and_no_open_upload(
    prefix: str, s3: services.S3, proxy: S3Proxy, number: int
) -> None:
    task_id = bulk()

    def cancel(call: Call) -> Fault | None:
        if call == Call(PART, number):
            service.cancel(task_id, principal=ANN)
        return None

    proxy.decide = cancel
    before = time.monotonic()
    found = work(task_id)
    assert found.state == "cancelled"
    assert time.monotonic() - before < 10
    assert proxy.count(COMPLETE) <= (number == 3)
    assert s3.objects(prefix).keys() <= {"identity"}
    assert s3.open_uploads(prefix) == []


def test_what_a_zombie_makes_behind_the_end_goes_when_its_lease_is_over(prefix: str, s3: services.S3) -> None:
    task_id = bulk()
    found = work(task_id)
    sweep.clean_up()
    client, bucket = s3.client(), conf().s3_bucket
    client.create_multipart_upload(Bucket=bucket, Key=f"{prefix}/{found.object_key}")
    client.put_object(Bucket=bucket, Key=f"{prefix}/{task_id}/r0-older.csv", Body=b"older")
    assert not only_the_file(s3, prefix, found)
    _until(lambda: only_the_file(s3, prefix, found), limit_s=conf().lease_ms / 1000 + 30)
    assert sha256_of(task_id) == found.sha256


def _until(condition: Callable[[], bool], *, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline
        sweep.clean_up()
        time.sleep(0.1)


def test_a_store_that_loses_its_uploads_uses_up_the_tries(prefix: str, s3: services.S3, proxy: S3Proxy) -> None:
    proxy.decide = lambda call: Fault(404, "NoSuchUpload") if call.name == COMPLETE else None
    task_id = bulk()
    found = work(task_id)
    assert (found.state, found.phase) == ("failed", "upload")
    assert proxy.count(CREATE) == 5
    proxy.forget()
    service.cancel(task_id, principal=ANN)
    sweep.clean_up()
    assert s3.open_uploads(prefix) == []
    assert proxy.count(ABORT) == 1


def test_an_open_upload_of_an_unknown_task_is_purged_when_it_is_old(
    prefix: str, s3: services.S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, key = "exp_01J00000000000000000000000", f"{prefix}/exp_01J00000000000000000000000/r1.csv"
    assert purging.purge(dry_run=False).refusal == ""
    s3.client().create_multipart_upload(Bucket=conf().s3_bucket, Key=key)
    found = purging.purge(dry_run=False)
    assert (found.unknown["store"], found.kept["store"]) == ((), (old,))
    later = time.time() + 8 * 86_400
    monkeypatch.setattr(time, "time", lambda: later)
    assert purging.purge(dry_run=False).unknown["store"] == (old,)
    assert s3.open_uploads(prefix) == []


def test_an_upload_that_was_begun_and_not_recorded_is_aborted_by_the_next_try(
    prefix: str, s3: services.S3, proxy: S3Proxy
) -> None:
    """As by a kill between the answer and the record."""
    task_id = bulk()
    for actor in (plan.plan, shard.shard):
        actor.fn()
    proxy.fail(CREATE, Fault(forward=True))
    render.render.fn()
    upload.upload.fn()
    found = work(task_id)
    assert found.state == "succeeded"
    assert only_the_file(s3, prefix, found)


def test_a_store_that_hangs_holds_up_neither_a_cancel_nor_the_rest_of_a_sweep(
    prefix: str, s3: services.S3, proxy: S3Proxy
) -> None:
    for _ in range(2):
        task_id = bulk()
        proxy.decide = lambda call: INTERNAL if call.name == COMPLETE else None
        assert work(task_id).state == "failed"
        proxy.forget()
        proxy.decide = lambda _: Fault(500, "InternalError", wait_s=0.2)
        before = len(proxy.calls)
        assert service.cancel(task_id, principal=ANN).state == "cancelled"
        assert len(proxy.calls) == before
    sweep.clean_up()
    assert len(proxy.calls) == 1
    proxy.forget()
    sweep.clean_up()
    assert len(s3.open_uploads(prefix)) == 1
