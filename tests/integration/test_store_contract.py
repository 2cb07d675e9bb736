"""What every store of finished files keeps, whatever it is made of. Objects of 7 MiB take two parts in the S3 store."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from exports.conf import conf
from exports.errors import SegmentDamaged, StoreUnavailable, TaskStopped
from exports.storage import artifacts
from exports.storage.base import ArtifactStore, Source
from tests import services
from tests.conftest import exports_settings
from tests.stores import MIB, MemoryRecord, some_bytes, source_of

SMALL, LARGE = some_bytes(1000), some_bytes(7 * MIB)
KEY = "exp_1/r1-aaaa.csv"


@dataclass
class Place:
    """A store and what can be seen of it from outside."""

    store: ArtifactStore
    folder: Path | None = None
    s3: services.S3 | None = None
    prefix: str = ""

    def put(self, data: bytes, *, key: str = KEY) -> None:
        self.store.put(key, source_of(data), record=MemoryRecord())

    def get(self, key: str = KEY) -> bytes:
        return b"".join(self.store.read(key, 0, self.store.size(key) or 0))

    def leftovers(self) -> list[str]:
        """Everything that is neither a finished object nor the identity."""
        if self.s3:
            return self.s3.open_uploads(self.prefix)
        assert self.folder
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return [path.name for path in files if path.name.startswith(".")]

    @contextmanager
    def away(self) -> Iterator[ArtifactStore]:
        """The store as a process finds it that cannot reach it."""
        if self.folder:
            (self.folder / "file").touch()
            with exports_settings(store_dir=self.folder / "file"):
                yield artifacts()
        elif self.s3:
            with exports_settings(s3_endpoint_url=f"http://127.0.0.1:{services.free_port()}"):
                yield artifacts()


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "folder":
        with exports_settings(store_dir=tmp_path):
            yield Place(artifacts(), folder=tmp_path)
        return
    server: services.S3 = request.getfixturevalue("s3")
    prefix = f"contract/{uuid.uuid4().hex}"
    with exports_settings(**server.settings(prefix=prefix)):
        yield Place(artifacts(), s3=server, prefix=prefix)


@pytest.mark.parametrize("data", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
def test_an_object_has_exactly_the_bytes_of_its_source(place: Place, data: bytes) -> None:
    place.put(data)
    assert place.store.size(KEY) == len(data)
    assert place.get() == data
    assert place.leftovers() == []


def test_any_range_of_an_object_can_be_read(place: Place) -> None:
    place.put(LARGE)
    for offset, length in ((0, 1), (5 * MIB - 1, 2), (3, 6 * MIB), (7 * MIB - 5, 5), (4, 0)):
        assert b"".join(place.store.read(KEY, offset, length)) == LARGE[offset : offset + length]


def test_a_second_put_replaces_the_object(place: Place) -> None:
    place.put(SMALL)
    place.put(LARGE)
    assert place.get() == LARGE
    place.put(SMALL[:7])
    assert place.get() == SMALL[:7]


def test_what_is_not_there_has_no_size_and_cannot_be_read(place: Place) -> None:
    assert place.store.size(KEY) is None
    with pytest.raises(FileNotFoundError):
        list(place.store.read(KEY, 0, 1))


@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["small", "large"])
def test_other_bytes_than_those_of_the_digest_make_no_object(place: Place, data: bytes) -> None:
    with pytest.raises(SegmentDamaged):
        place.store.put(KEY, source_of(data, sha256="0" * 64), record=MemoryRecord())
    assert place.store.size(KEY) is None


def test_a_source_that_breaks_off_leaves_the_old_object(place: Place) -> None:
    place.put(SMALL)

    def read(offset: int, length: int) -> Iterator[bytes]:
        if offset + length > 5 * MIB:
            raise TaskStopped
        yield LARGE[offset : offset + length]

    whole = source_of(LARGE)
    with pytest.raises(TaskStopped):
        place.store.put(KEY, Source(whole.size, whole.sha256, read), record=MemoryRecord())
    assert place.get() == SMALL


def test_a_store_that_is_away_says_so(place: Place) -> None:
    with place.away() as store:
        for call in (
            lambda: store.put(KEY, source_of(SMALL), record=MemoryRecord()),
            lambda: store.put(KEY, source_of(LARGE), record=MemoryRecord()),
            lambda: store.size(KEY),
            lambda: store.delete("exp_1"),
            store.task_ids,
            store.read_identity,
            lambda: store.write_identity("me"),
        ):
            with pytest.raises(StoreUnavailable):
                call()


def test_a_deleted_task_leaves_nothing_and_the_others_all(place: Place) -> None:
    for key in (KEY, "exp_1/r2-bbbb.xlsx", "exp_10/r1-cccc.csv"):
        place.put(SMALL, key=key)
    for _ in range(2):
        place.store.delete("exp_1")
        assert place.store.task_ids() == ["exp_10"]
    assert place.get("exp_10/r1-cccc.csv") == SMALL


def test_all_but_the_kept_object_can_be_deleted(place: Place) -> None:
    place.put(SMALL)
    place.put(LARGE, key="exp_1/r2-bbbb.csv")
    for _ in range(2):
        place.store.delete("exp_1", keep=["exp_1/r2-bbbb.csv"])
        assert place.store.size(KEY) is None
        assert place.get("exp_1/r2-bbbb.csv") == LARGE
    place.store.delete("exp_2", keep=["exp_2/r1-aaaa.csv"])


def test_tasks_are_known_by_their_objects_and_when_they_last_changed(place: Place) -> None:
    before = time.time()
    assert (place.store.task_ids(), place.store.changed_at("exp_1")) == ([], 0.0)
    place.put(SMALL, key="exp_2/r1.csv")
    place.put(SMALL)
    place.store.write_identity("me")
    assert place.store.task_ids() == ["exp_1", "exp_2"]
    assert abs(place.store.changed_at("exp_1") - before) < 30


def test_the_identity_is_kept(place: Place) -> None:
    assert place.store.read_identity() == ""
    for name in ("one", "two"):
        place.store.write_identity(name)
        assert place.store.read_identity() == name


def test_a_put_that_was_killed_leaves_nothing_behind_a_delete(place: Place) -> None:
    """What a killed process leaves: a temporary file, or an open upload that nobody has recorded."""
    if place.folder:
        (place.folder / "exp_1").mkdir()
        (place.folder / "exp_1/.r1-aaaa.csv.0123").write_bytes(SMALL)
    elif place.s3:
        place.s3.client().create_multipart_upload(Bucket=conf().s3_bucket, Key=f"{place.prefix}/{KEY}")
    assert len(place.leftovers()) == 1
    assert place.store.task_ids() == ["exp_1"]
    assert place.store.changed_at("exp_1") > 0
    place.put(SMALL, key="exp_1/r2-bbbb.csv")
    place.store.delete("exp_1", keep=["exp_1/r2-bbbb.csv"])
    assert (place.leftovers(), place.get("exp_1/r2-bbbb.csv")) == ([], SMALL)
