"""The S3 store when calls fail, answers are lost, processes die and other bytes come: parts that are taken stay taken."""

import hashlib
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator

import pytest

from exports.conf import conf
from exports.errors import LeaseLost, StoreUnavailable, TaskStopped
from exports.storage import artifacts, multipart, s3_bucket
from exports.storage.base import ArtifactStore, Source
from tests import services
from tests.conftest import exports_settings
from tests.s3_proxy import (
    COMPLETE,
    CREATE,
    ERROR_IN_200,
    HEAD,
    INTERNAL,
    LIST_UPLOADS,
    LOST_REPLY,
    LOST_REQUEST,
    PART,
    PUT,
    SLOW_DOWN,
    Call,
    Fault,
    S3Proxy,
)
from tests.stores import MIB, MemoryRecord, some_bytes, source_of

DATA = some_bytes(11 * MIB)
PARTS = [1, 2, 3]
HANGS = Fault(wait_s=3.0)
PREFIX = "s3"
GONE = Fault(404, "NoSuchUpload")
INVALID_PART = Fault(400, "InvalidPart")


@pytest.fixture(scope="module")
def server(s3: services.S3) -> Iterator[S3Proxy]:
    proxy = S3Proxy(s3.port)
    yield proxy
    proxy.close()


@pytest.fixture(scope="module")
def one_store(s3: services.S3, server: S3Proxy) -> Iterator[ArtifactStore]:
    """Through the proxy; to make a client takes a while, so there is one for all tests."""
    with exports_settings(**s3.settings(prefix=PREFIX, url=server.url)):
        yield artifacts()


@pytest.fixture
def store(one_store: ArtifactStore, server: S3Proxy) -> ArtifactStore:
    server.forget()
    return one_store


@pytest.fixture
def key() -> str:
    """Of a task of its own."""
    return f"exp_{uuid.uuid4().hex}/r1-aaaa.csv"


@pytest.fixture
def open_uploads(s3: services.S3, key: str) -> Callable[[], list[str]]:
    return lambda: s3.open_uploads(f"{PREFIX}/{key.partition('/')[0]}")


def read(store: ArtifactStore, key: str) -> bytes:
    return b"".join(store.read(key, 0, store.size(key) or 0))


def interrupted(data: bytes, *, behind: int) -> Source:
    """A source that is stopped, as by a cancel, when more than so many parts are asked for."""
    whole = source_of(data)

    def read(offset: int, length: int) -> Iterator[bytes]:
        if offset >= behind * 5 * MIB:
            raise TaskStopped
        yield from whole.read(offset, length)

    return Source(whole.size, whole.sha256, read)


def put_some(store: ArtifactStore, key: str, record: MemoryRecord, *, parts: int, data: bytes = DATA) -> None:
    with pytest.raises(TaskStopped):
        store.put(key, interrupted(data, behind=parts), record=record)
    assert sorted(record.parts) == list(range(1, parts + 1))


@pytest.mark.parametrize(
    ("size", "least", "expected"),
    [
        (12 * MIB, 8 * MIB, 8 * MIB),
        (60 << 30, 5 * MIB, 6_442_451),
        (80_000 * MIB, 8 * MIB, 8 * MIB),
        (80_000 * MIB + 1, 8 * MIB, 8 * MIB + 1),
        (5 << 40, 8 * MIB, 549_755_814),
    ],
)
def test_a_part_grows_so_that_ten_thousand_are_enough(size: int, least: int, expected: int) -> None:
    """H107 H108"""
    found = multipart.choose_part_size(size, least=least)
    assert found == expected
    assert found >= 5 * MIB and -(-size // found) <= 10_000


def test_a_file_of_one_part_takes_one_call(store: ArtifactStore, server: S3Proxy, key: str) -> None:
    store.put(key, source_of(DATA[: 5 * MIB]), record=MemoryRecord())
    assert server.calls == [Call(PUT)]
    assert read(store, key) == DATA[: 5 * MIB]


def test_parts_that_were_taken_are_not_sent_again(
    store: ArtifactStore, server: S3Proxy, key: str, open_uploads: Callable[[], list[str]]
) -> None:
    """H110"""
    record = MemoryRecord()
    put_some(store, key, record, parts=2)
    first = record.upload
    server.forget()
    store.put(key, source_of(DATA), record=record)
    assert (sorted(server.parts()), record.upload) == ([3], first)
    assert read(store, key) == DATA
    assert open_uploads() == []


def test_the_size_of_parts_may_change_between_two_tries(store: ArtifactStore, server: S3Proxy, key: str) -> None:
    record = MemoryRecord()
    put_some(store, key, record, parts=2)
    server.forget()
    with exports_settings(**conf_of_s3() | {"s3_part_mb": 8}):
        artifacts().put(key, source_of(DATA), record=record)
    assert sorted(server.parts()) == [3]
    assert read(store, key) == DATA


def conf_of_s3() -> dict[str, object]:
    return {name: getattr(conf(), name) for name in conf().__slots__ if name == "storage" or name.startswith("s3_")}


@pytest.mark.parametrize("fault", [INTERNAL, LOST_REQUEST, LOST_REPLY], ids=["failed", "no request", "no reply"])
@pytest.mark.parametrize("name", [LIST_UPLOADS, CREATE, PART, COMPLETE, HEAD])
def test_a_call_that_fails_costs_one_try_and_at_most_its_own_part(
    store: ArtifactStore,
    server: S3Proxy,
    key: str,
    open_uploads: Callable[[], list[str]],
    name: str,
    fault: Fault,
) -> None:
    """H111"""
    data, record = DATA[: 6 * MIB], MemoryRecord()
    server.fail(name, fault)
    with pytest.raises(StoreUnavailable):
        store.put(key, source_of(data), record=record)
    store.put(key, source_of(data), record=record)
    assert read(store, key) == data
    assert open_uploads() == []
    assert len(server.parts()) == (3 if name == PART else 2)


@pytest.mark.parametrize("name", [PART, COMPLETE])
def test_a_call_without_an_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch, store: ArtifactStore, server: S3Proxy, key: str, name: str
) -> None:
    monkeypatch.setattr(s3_bucket, "_READ_TIMEOUT_S", 1.5)
    data, record = DATA[: 6 * MIB], MemoryRecord()
    server.fail(name, HANGS)
    with exports_settings(**conf_of_s3()), pytest.raises(StoreUnavailable, match="ReadTimeout"):
        artifacts().put(key, source_of(data), record=record)
    store.put(key, source_of(data), record=record)
    assert read(store, key) == data


@pytest.mark.parametrize("fault", [INTERNAL, LOST_REPLY], ids=["failed", "lost reply"])
def test_a_small_file_is_put_again(store: ArtifactStore, server: S3Proxy, fault: Fault, key: str) -> None:
    server.fail(PUT, fault)
    with pytest.raises(StoreUnavailable):
        store.put(key, source_of(b"small"), record=MemoryRecord())
    store.put(key, source_of(b"small"), record=MemoryRecord())
    assert read(store, key) == b"small"


def test_an_error_in_an_answer_of_200_is_an_error(store: ArtifactStore, server: S3Proxy, key: str) -> None:
    record = MemoryRecord()
    server.fail(COMPLETE, ERROR_IN_200)
    with pytest.raises(StoreUnavailable, match="InternalError"):
        store.put(key, source_of(DATA), record=record)
    assert store.size(key) is None
    store.put(key, source_of(DATA), record=record)
    assert sorted(server.parts()) == PARTS
    assert read(store, key) == DATA


def test_an_upload_that_was_completed_without_an_answer_is_found_to_be_there(
    store: ArtifactStore, server: S3Proxy, key: str
) -> None:
    """AWS answers the second Complete with NoSuchUpload."""
    record = MemoryRecord()
    server.fail(COMPLETE, LOST_REPLY)
    with pytest.raises(StoreUnavailable):
        store.put(key, source_of(DATA), record=record)
    server.fail(COMPLETE, GONE)
    store.put(key, source_of(DATA), record=record)
    assert sorted(server.parts()) == PARTS
    assert read(store, key) == DATA


@pytest.mark.parametrize("made", [b"other bytes", DATA[:-1] + b"x"], ids=["size", "bytes"])
def test_another_object_under_the_key_is_not_taken_for_ours(
    store: ArtifactStore, server: S3Proxy, s3: services.S3, made: bytes, key: str
) -> None:
    """The size alone, or what was said at the upload, proves nothing."""
    record = MemoryRecord()
    put_some(store, key, record, parts=2)
    sha256 = hashlib.sha256(DATA).hexdigest()
    s3.client().put_object(Bucket=conf().s3_bucket, Key=f"{PREFIX}/{key}", Body=made, Metadata={"sha256": sha256})
    server.fail(COMPLETE, GONE)
    with pytest.raises(StoreUnavailable):
        store.put(key, source_of(DATA), record=record)
    store.put(key, source_of(DATA), record=record)
    assert read(store, key) == DATA


@pytest.mark.parametrize(("name", "fault"), [(COMPLETE, INVALID_PART), (COMPLETE, GONE), (PART, GONE)])
def test_an_upload_that_the_store_has_lost_is_begun_anew(
    store: ArtifactStore, server: S3Proxy, name: str, fault: Fault, key: str, open_uploads: Callable[[], list[str]]
) -> None:
    record = MemoryRecord()
    server.fail(name, fault)
    with pytest.raises(StoreUnavailable):
        store.put(key, source_of(DATA), record=record)
    assert record.parts == {}
    assert len(open_uploads()) == 1
    server.forget()
    store.put(key, source_of(DATA), record=record)
    assert sorted(server.parts()) == PARTS
    assert read(store, key) == DATA
    assert open_uploads() == []


def test_a_failed_part_is_left_for_the_next_try_and_the_others_go_on(
    store: ArtifactStore, server: S3Proxy, key: str
) -> None:
    record = MemoryRecord()
    server.fail(PART, INTERNAL, number=2, times=2)
    for _ in range(2):
        with pytest.raises(StoreUnavailable) as caught:
            store.put(key, source_of(DATA), record=record)
        assert caught.value.part == 2
        assert sorted(record.parts) == [1, 3]
    store.put(key, source_of(DATA), record=record)
    assert sorted(server.parts()) == [1, 2, 2, 2, 3]
    assert read(store, key) == DATA


def test_a_store_that_is_away_is_not_asked_for_every_part(store: ArtifactStore, server: S3Proxy, key: str) -> None:
    server.decide = lambda call: INTERNAL if call.name == PART and call.number > 2 else None
    bucket = s3_bucket.Bucket(conf(), connections=4)
    upload = multipart.Upload(bucket, key, source_of(some_bytes(50_000)), record=MemoryRecord(), part_size=1000)
    with pytest.raises(StoreUnavailable) as caught:
        upload.run()
    assert caught.value.part == 3
    assert len(server.parts()) < 25


def test_other_bytes_begin_another_upload_and_end_the_first(
    store: ArtifactStore, server: S3Proxy, key: str, open_uploads: Callable[[], list[str]]
) -> None:
    record, other = MemoryRecord(), some_bytes(11 * MIB, seed=2)
    put_some(store, key, record, parts=2)
    first = record.upload
    server.forget()
    with pytest.raises(TaskStopped):
        store.put(key, interrupted(other, behind=1), record=record)
    assert record.upload != first
    assert len(open_uploads()) == 1
    store.put(key, source_of(other), record=record)
    assert sorted(server.parts()) == PARTS
    assert read(store, key) == other


def test_a_part_whose_bytes_were_others_is_sent_again(store: ArtifactStore, server: S3Proxy, key: str) -> None:
    """As when the spool was damaged while it was read, and mended since."""
    record, damaged = MemoryRecord(), DATA[: 6 * MIB] + b"x" + DATA[6 * MIB + 1 :]
    source = source_of(damaged, sha256=hashlib.sha256(DATA).hexdigest())
    with pytest.raises(TaskStopped):
        store.put(key, Source(source.size, source.sha256, interrupted(damaged, behind=2).read), record=record)
    assert sorted(record.parts) == [1, 2]
    server.forget()
    store.put(key, source_of(DATA), record=record)
    assert sorted(server.parts()) == [2, 3]
    assert read(store, key) == DATA


def test_an_upload_that_may_not_be_recorded_is_not_left_open(
    store: ArtifactStore, server: S3Proxy, key: str, open_uploads: Callable[[], list[str]]
) -> None:
    """As when the lease is lost between the check and the answer of the store."""
    record = MemoryRecord()
    record.check = lambda: setattr(record, "refuse", LeaseLost())  # type: ignore[method-assign]
    with pytest.raises(LeaseLost):
        store.put(key, source_of(DATA), record=record)
    assert (server.count(CREATE), open_uploads()) == (1, [])


def test_a_woken_zombie_does_no_harm(store: ArtifactStore, key: str, open_uploads: Callable[[], list[str]]) -> None:
    """It goes on with the upload that its successor has completed; what it begins then is not recorded."""
    record = MemoryRecord()
    put_some(store, key, record, parts=2)
    zombie = MemoryRecord()
    zombie.upload, zombie.parts = record.upload, dict(record.parts)
    store.put(key, source_of(DATA), record=record)
    zombie.refuse = LeaseLost()
    with pytest.raises((LeaseLost, StoreUnavailable)):
        store.put(key, source_of(DATA), record=zombie)
    assert read(store, key) == DATA
    assert open_uploads() == []


def test_a_woken_zombie_does_not_abort_the_upload_of_its_successor(
    store: ArtifactStore, server: S3Proxy, key: str, open_uploads: Callable[[], list[str]]
) -> None:
    record, zombie = MemoryRecord(), MemoryRecord()
    put_some(store, key, record, parts=2)
    zombie.refuse = LeaseLost()
    with pytest.raises(LeaseLost):
        store.put(key, source_of(DATA), record=zombie)
    assert len(open_uploads()) == 1
    server.forget()
    store.put(key, source_of(DATA), record=record)
    assert server.parts() == [3]


def test_an_upload_goes_on_when_the_server_was_killed(
    store: ArtifactStore, server: S3Proxy, s3: services.S3, key: str, open_uploads: Callable[[], list[str]]
) -> None:
    record = MemoryRecord()
    put_some(store, key, record, parts=2)
    s3.kill()
    with pytest.raises(StoreUnavailable):
        store.put(key, source_of(DATA), record=record)
    s3.start()
    server.forget()
    _patiently(store, key, record)
    assert sorted(record.parts) == PARTS
    assert sorted(set(server.parts())) == [3]
    assert read(store, key) == DATA
    assert open_uploads() == []


def _patiently(store: ArtifactStore, key: str, record: MemoryRecord) -> None:
    """A server that has just come back may refuse writes for a moment."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return store.put(key, source_of(DATA), record=record)
        except StoreUnavailable:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_encryption_is_asked_for(store: ArtifactStore, server: S3Proxy, key: str) -> None:
    """SeaweedFS has no key to encrypt with, so the answer is made up."""
    with exports_settings(**conf_of_s3() | {"s3_encryption": "AES256"}):
        for name, data in ((PUT, b"small"), (CREATE, DATA)):
            server.fail(name, SLOW_DOWN)
            with pytest.raises(StoreUnavailable, match="SlowDown"):
                artifacts().put(key, source_of(data), record=MemoryRecord())
            assert server.encryption[name] == "AES256"


def test_a_link_serves_the_object_for_a_minute_and_cannot_be_changed(store: ArtifactStore, key: str) -> None:
    """H112 H113"""
    store.put(key, source_of(b"small"), record=MemoryRecord())
    disposition = "attachment; filename=\"export.csv\"; filename*=UTF-8''%E8%AE%A2.csv"
    link = store.link(key, content_type="text/csv; charset=utf-8", disposition=disposition)
    assert link is not None
    assert "X-Amz-Algorithm=AWS4-HMAC-SHA256" in link and "X-Amz-Expires=60" in link
    with urllib.request.urlopen(link, timeout=30) as answer:
        assert answer.read() == b"small"
        assert answer.headers["Content-Disposition"] == disposition
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    for changed in (link.replace("Expires=60", "Expires=61"), link.replace("r1-aaaa", "r1-bbbb"), link.split("?")[0]):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(changed, timeout=30)
        assert refusal.value.code == 403
        refusal.value.close()
