"""The spool on a real disk: what counts is what was committed, whatever else lies in the files."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from exports.contracts import CommittedSegment, Page, Warning
from exports.errors import SegmentDamaged, SpoolFull
from exports.storage.base import NoRecord
from exports.storage.filesystem import FolderStore
from exports.storage.recipe import Piece, Recipe
from exports.storage.spool import SegmentWriter, Spool
from tests.stores import source_of


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    spool = Spool(tmp_path / "spool")
    spool.create("exp_1")
    return spool


@pytest.fixture
def writer(spool: Spool) -> Iterator[SegmentWriter]:
    writer = spool.open_segment("exp_1", "a-1-x", shard_id="a", fence=1, sync_pages=False)
    yield writer
    writer.close()


def page(text: bytes, rows: int = 2) -> Page:
    return Page(text, rows, len(text) * 2, 99, (Warning("cut_cells", 1, ("7",)),))


def test_pages_are_appended_and_read_back(spool: Spool, writer: SegmentWriter) -> None:
    for text in (b"one", b"second"):
        committed = writer.append(page(text))
        writer.keep(committed)
    assert committed == CommittedSegment("a-1-x", "a", 1, pages=2, rows=4, length=9, crc=committed.crc)
    assert [(record.length, record.raw_length, record.warnings) for record in spool.pages("exp_1", committed)] == [
        (3, 6, (Warning("cut_cells", 1, ("7",)),)),
        (6, 12, (Warning("cut_cells", 1, ("7",)),)),
    ]
    assert b"".join(spool.read("exp_1", Piece(4, segment="a-1-x", offset=2))) == b"esec"


def test_a_page_that_was_not_committed_is_overwritten(spool: Spool, writer: SegmentWriter) -> None:
    writer.keep(writer.append(page(b"one")))
    writer.append(page(b"a longer page that is tried again"))
    committed = writer.append(page(b"two"))
    writer.keep(committed)
    assert (spool.folder("exp_1") / "a-1-x").read_bytes() == b"onetwo"
    assert len(spool.pages("exp_1", committed)) == 2


def test_bytes_behind_the_committed_length_do_not_count(spool: Spool, writer: SegmentWriter) -> None:
    committed = writer.append(page(b"one"))
    writer.keep(committed)
    writer.append(page(b"torn"))
    assert len(spool.pages("exp_1", committed)) == 1


@pytest.mark.parametrize("damage", ["gone", "short", "flipped", "sidecar gone", "sidecar short", "sidecar flipped"])
def test_damaged_bytes_are_found(spool: Spool, writer: SegmentWriter, damage: str) -> None:
    committed = writer.append(page(b"0123456789"))
    writer.keep(committed)
    path = spool.folder("exp_1") / "a-1-x"
    sidecar = spool.folder("exp_1") / "a-1-x.pages"
    {
        "gone": path.unlink,
        "short": lambda: os.truncate(path, 9),
        "flipped": lambda: path.write_bytes(b"0123456780"),
        "sidecar gone": sidecar.unlink,
        "sidecar short": lambda: os.truncate(sidecar, 3),
        "sidecar flipped": lambda: sidecar.write_bytes(sidecar.read_bytes().replace(b",99,", b",98,")),
    }[damage]()
    with pytest.raises(SegmentDamaged) as found:
        spool.pages("exp_1", committed)
    assert found.value.shard_ids == ("a",)


def test_a_second_claim_never_writes_into_the_first_ones_file(spool: Spool, writer: SegmentWriter) -> None:
    assert writer is not None
    with pytest.raises(Exception, match="FileExistsError"):
        spool.open_segment("exp_1", "a-1-x", shard_id="a", fence=1, sync_pages=False)


def test_a_zombie_finds_no_folder_after_a_removal(spool: Spool, writer: SegmentWriter) -> None:
    writer.append(page(b"one"))
    spool.remove("exp_1")
    writer.append(page(b"two"))
    assert spool.task_ids() == []
    with pytest.raises(SegmentDamaged):
        spool.open_segment("exp_1", "a-2-y", shard_id="a", fence=2, sync_pages=False)


def test_a_full_disk_is_told_and_the_committed_bytes_stay(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], check=False, capture_output=True
    )
    if done.returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        spool = Spool(mount / "spool")
        spool.create("exp_1")
        writer = spool.open_segment("exp_1", "a-1-x", shard_id="a", fence=1, sync_pages=False)
        committed = writer.append(page(b"x" * 500_000))
        writer.keep(committed)
        with pytest.raises(SpoolFull):
            writer.append(page(b"y" * 900_000))
        assert len(spool.pages("exp_1", committed)) == 1
        assert (spool.folder("exp_1") / "a-1-x").stat().st_size == 500_000
        writer.close()
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


def test_files_are_for_the_owner_alone(spool: Spool, writer: SegmentWriter) -> None:
    writer.append(page(b"one"))
    assert (spool.folder("exp_1").stat().st_mode & 0o777, (spool.folder("exp_1") / "a-1-x").stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )


def test_a_worker_is_proved_dead_only_when_its_process_is_gone(spool: Spool) -> None:
    code = (
        "import sys, pathlib; from exports.storage.spool import Spool; "
        "lock = Spool(pathlib.Path(sys.argv[1])).stay_alive('host:w'); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(spool.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"locked\n"
        assert not spool.proved_dead("host:w")
        process.kill()
        process.wait()
        assert spool.proved_dead("host:w")
    assert not spool.proved_dead("host:never seen here")
    assert spool.dead_workers() == {"host:w"}
    spool.bury(["host:w"])
    assert not spool.proved_dead("host:w")


def test_a_worker_that_starts_is_never_taken_for_dead(spool: Spool) -> None:
    found: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            found.update(spool.dead_workers())

    looking = threading.Thread(target=look)
    looking.start()
    locks = [spool.stay_alive(f"host:{number}") for number in range(500)]
    over.set()
    looking.join()
    for lock in locks:
        os.close(lock)
    assert found == set()


def recipe() -> Recipe:
    return Recipe((Piece(3, data=b"abc"), Piece(4, segment="s", offset=10), Piece(2, data=b"yz")), 9, "f" * 64, "{}")


def test_any_byte_range_of_a_recipe_can_be_read(spool: Spool) -> None:
    (spool.folder("exp_1") / "s").write_bytes(b"..........1234......")
    spool.write_recipe("exp_1", recipe())
    found = spool.read_recipe("exp_1", sha256="f" * 64)
    assert found == recipe()
    from exports.storage import recipe as recipes

    whole = b"abc1234yz"
    for offset in range(10):
        for length in range(10 - offset):
            chunks = recipes.read(found, offset, length, read_segment=lambda piece: spool.read("exp_1", piece))
            assert b"".join(chunks) == whole[offset : offset + length]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"size":1,"sha256":"x","manifest":"","pieces":[1]}'])
def test_a_broken_recipe_sends_the_task_back_to_render(spool: Spool, text: str) -> None:
    (spool.folder("exp_1") / "recipe.json").write_text(text)
    with pytest.raises(SegmentDamaged):
        spool.read_recipe("exp_1", sha256="f" * 64)


def test_a_recipe_of_other_bytes_is_not_used(spool: Spool) -> None:
    spool.write_recipe("exp_1", recipe())
    with pytest.raises(SegmentDamaged):
        spool.read_recipe("exp_1", sha256="e" * 64)


def test_an_artifact_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("exp_1/r1.csv", source_of(b"abcdef"), record=NoRecord())
    with pytest.raises(SegmentDamaged):
        store.put("exp_1/r1.csv", source_of(b"xyz", sha256="0" * 64), record=NoRecord())
    assert b"".join(store.read("exp_1/r1.csv", 0, 6)) == b"abcdef"
    assert [path.name for path in (tmp_path / "exp_1").iterdir()] == ["r1.csv"]
    (tmp_path / ".exp_1.killed").mkdir()
    store.delete("exp_1")
    assert list(tmp_path.iterdir()) == []
