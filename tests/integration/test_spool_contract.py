"""What every spool keeps, whatever it is made of: what counts is what was committed, whatever else lies there."""

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from config.demo.object_store import BUCKET
from exports import storage
from exports.contracts import CommittedSegment, Page, PageRecord, Warning
from exports.errors import SegmentDamaged
from exports.storage import recipe as recipes
from exports.storage.base import SegmentWriter, Spool
from exports.storage.recipe import Piece, Recipe
from exports.storage.spool import FolderSpool
from tests import services
from tests.conftest import exports_settings
from tests.stores import some_bytes

NOTE = Warning("cut_cells", 1, ("7",))


@dataclass
class Place:
    """A spool with a place for task exp_1, and how to do harm to what lies there."""

    spool: Spool
    folder: Path | None = None
    s3: services.S3 | None = None
    prefix: str = ""

    def open(self, name: str = "a-1-x", *, fence: int = 1) -> SegmentWriter:
        return self.spool.open_segment("exp_1", name, shard_id="a", fence=fence, sync_pages=False)

    def read(self, offset: int, length: int) -> bytes:
        return b"".join(self.spool.read("exp_1", Piece(length, segment="a-1-x", offset=offset)))

    def names(self, part: str = "") -> list[str]:
        """Of all that lies there and has this in its name."""
        if self.s3:
            found = list(self.s3.objects(f"{self.prefix}/spool"))
        else:
            assert self.folder
            found = [str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()]
        return sorted(name for name in found if part in name and name != "identity")

    def change(self, name: str, harm: Callable[[bytes], bytes | None]) -> bool:
        """Give an object other bytes, None takes it away; whether they are others."""
        if self.folder:
            path = self.folder / name
            before = path.read_bytes()
            after = harm(before)
            path.unlink() if after is None else path.write_bytes(after)
        else:
            assert self.s3
            client, where = self.s3.client(), {"Bucket": BUCKET, "Key": f"{self.prefix}/spool/{name}"}
            before = client.get_object(**where)["Body"].read()
            after = harm(before)
            client.delete_object(**where) if after is None else client.put_object(**where, Body=after)
        return after != before


@pytest.fixture(scope="module")
def bucket_place(s3: services.S3) -> Place:
    """Made once: a client takes a tenth of a second."""
    prefix = f"spool-contract/{uuid.uuid4().hex}"
    with exports_settings(spool="s3", **s3.settings(prefix=prefix)):
        return Place(storage.spool(), s3=s3, prefix=prefix)


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "folder":
        found = Place(FolderSpool(tmp_path), folder=tmp_path / "tasks")
    else:
        found = request.getfixturevalue("bucket_place")
    found.spool.create("exp_1")
    yield found
    for task_id in found.spool.task_ids():
        found.spool.remove(task_id)


def page(data: bytes, *, rows: int = 2) -> Page:
    return Page(data, rows, len(data) * 2, 99, (NOTE,))


def append(writer: SegmentWriter, *pages: bytes) -> CommittedSegment:
    """Append and commit; the segment behind the last."""
    for data in pages:
        committed = writer.append(page(data))
        writer.keep(committed)
    return committed


def test_pages_are_appended_and_read_back(place: Place) -> None:
    committed = append(place.open(), b"one", b"second")
    assert committed == CommittedSegment("a-1-x", "a", 1, pages=2, rows=4, length=9, crc=committed.crc)
    assert place.spool.pages("exp_1", committed) == [
        PageRecord(2, 3, 6, 99, (NOTE,)),
        PageRecord(2, 6, 12, 99, (NOTE,)),
    ]


def test_all_spools_count_the_same_crc(place: Place) -> None:
    """A task may be rendered by a newer version than has read it."""
    assert append(place.open(), b"one", b"second").crc == 1_549_735_272


def test_any_range_of_a_segment_can_be_read(place: Place) -> None:
    pages = [some_bytes(size, seed=size) for size in (3000, 1, 70_000, 20)]
    append(place.open(), *pages)
    whole = b"".join(pages)
    for offset, length in ((0, len(whole)), (0, 0), (2999, 3), (3000, 1), (3001, 70_000), (73_000, 21), (5, 10)):
        assert place.read(offset, length) == whole[offset : offset + length], (offset, length)


def test_a_range_that_is_not_there_is_told(place: Place) -> None:
    append(place.open(), b"0123456789")
    for offset, length in ((0, 100_000), (100_000, 1)):
        with pytest.raises(EOFError):
            place.read(offset, length)
    place.spool.drop("exp_1", ["a-1-x"])
    with pytest.raises((OSError, EOFError)):
        place.read(0, 1)


def test_a_page_that_was_not_committed_is_overwritten(place: Place) -> None:
    writer = place.open()
    append(writer, b"one")
    writer.append(page(b"a longer page that is tried again"))
    committed = append(writer, b"two")
    assert place.read(0, 6) == b"onetwo"
    assert len(place.spool.pages("exp_1", committed)) == 2


def test_bytes_behind_the_committed_length_do_not_count(place: Place) -> None:
    writer = place.open()
    committed = append(writer, b"one")
    writer.append(page(b"torn"))
    assert len(place.spool.pages("exp_1", committed)) == 1
    assert place.read(0, 3) == b"one"


def test_a_later_claim_has_a_segment_of_its_own(place: Place) -> None:
    first, second = place.open(), place.open("a-2-y", fence=2)
    before = append(first, b"one")
    after = append(second, b"two")
    first.append(page(b"by a zombie"))
    assert (len(place.spool.pages("exp_1", before)), len(place.spool.pages("exp_1", after))) == (1, 1)
    assert place.read(0, 3) == b"one"


@pytest.mark.parametrize(
    "harm",
    [
        lambda _: None,
        lambda data: data[:9],
        lambda data: data.replace(b"9", b"8", 1),
        lambda data: data.replace(b",99,", b",98,"),
        lambda data: data[:-3],
        lambda data: b"",
        lambda data: data[:10] + b"5\n",
    ],
    ids=["gone", "short", "flipped", "record flipped", "record short", "empty", "another record"],
)
def test_damaged_bytes_are_found(place: Place, harm: Callable[[bytes], bytes | None]) -> None:
    """In each of the objects that a segment has."""
    append(place.open("a-0-x"), b"0123456789", b"0123456789")
    for number, damaged in enumerate(place.names("a-0-x"), 1):
        committed = append(place.open(f"a-{number}-x"), b"0123456789", b"0123456789")
        if place.change(damaged.replace("a-0-x", f"a-{number}-x"), harm):
            with pytest.raises(SegmentDamaged) as found:
                place.spool.pages("exp_1", committed)
            assert found.value.shard_ids == ("a",)


def test_a_zombie_finds_no_place_after_a_removal(place: Place) -> None:
    append(place.open(), b"one", b"two")
    for _ in range(2):
        place.spool.remove("exp_1")
        assert (place.names(), place.spool.task_ids(), place.spool.changed_at("exp_1")) == ([], [], 0.0)
    with pytest.raises(SegmentDamaged):
        place.open("a-2-y", fence=2)


def test_what_no_longer_counts_is_dropped_and_the_rest_stays(place: Place) -> None:
    append(place.open("a-1-x1"), b"other")
    committed = append(place.open(), b"one")
    place.spool.drop("exp_1", ["gone", "a-1-x1"])
    place.spool.drop("exp_unknown", ["a-1-x"])
    assert place.names("a-1-x1") == []
    assert len(place.spool.pages("exp_1", committed)) == 1


def test_tasks_are_known_by_their_place_and_when_they_last_changed(place: Place) -> None:
    before = time.time()
    place.spool.create("exp_10")
    place.spool.create("exp_10")
    assert place.spool.task_ids() == ["exp_1", "exp_10"]
    assert abs(place.spool.changed_at("exp_10") - before) < 30
    place.spool.remove("exp_1")
    assert place.spool.task_ids() == ["exp_10"]


def test_the_identity_is_kept(place: Place) -> None:
    assert place.spool.read_identity() == ""
    for name in ("one", "two"):
        place.spool.write_identity(name)
        assert (place.spool.read_identity(), place.spool.task_ids()) == (name, ["exp_1"])


def recipe(sha256: str = "f" * 64) -> Recipe:
    return Recipe((Piece(3, data=b"abc"), Piece(4, segment="a-1-x", offset=10), Piece(2, data=b"yz")), 9, sha256, "{}")


def test_any_byte_range_of_a_recipe_can_be_read(place: Place) -> None:
    append(place.open(), b"..........12", b"34....")
    place.spool.write_recipe("exp_1", recipe("0" * 64))
    place.spool.write_recipe("exp_1", recipe())
    found = place.spool.read_recipe("exp_1", sha256="f" * 64)
    assert found == recipe()
    whole = b"abc1234yz"
    for offset in range(10):
        for length in range(10 - offset):
            chunks = recipes.read(found, offset, length, read_segment=lambda piece: place.spool.read("exp_1", piece))
            assert b"".join(chunks) == whole[offset : offset + length]


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b"\xff", b'{"size":1,"sha256":"x","manifest":"","pieces":[1]}'])
def test_a_broken_recipe_sends_the_task_back_to_render(place: Place, text: bytes) -> None:
    place.spool.write_recipe("exp_1", recipe())
    assert place.change("exp_1/recipe.json", lambda _: text)
    with pytest.raises(SegmentDamaged):
        place.spool.read_recipe("exp_1", sha256="f" * 64)


def test_a_recipe_of_other_bytes_or_none_is_not_used(place: Place) -> None:
    for _ in range(2):
        with pytest.raises(SegmentDamaged):
            place.spool.read_recipe("exp_1", sha256="e" * 64)
        place.spool.write_recipe("exp_1", recipe())


def test_nobody_who_lives_is_proved_dead(place: Place) -> None:
    lock = place.spool.stay_alive("host:w")
    assert place.spool.dead_workers() == frozenset()
    place.spool.bury(["host:unknown"])
    assert (lock is None) == place.spool.remote
