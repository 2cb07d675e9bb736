"""The spool on a real disk, beside what it has in common with the others: `test_spool_contract`."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from exports.contracts import Page, Warning
from exports.errors import SegmentDamaged, SpoolFull
from exports.storage.base import NoRecord
from exports.storage.filesystem import FolderStore
from exports.storage.spool import FolderSegment, FolderSpool
from tests.stores import source_of


@pytest.fixture
def spool(tmp_path: Path) -> FolderSpool:
    spool = FolderSpool(tmp_path / "spool")
    spool.create("exp_1")
    return spool


@pytest.fixture
def writer(spool: FolderSpool) -> Iterator[FolderSegment]:
    writer = spool.open_segment("exp_1", "a-1-x", shard_id="a", fence=1, sync_pages=False)
    yield writer
    writer.close()


def page(text: bytes, rows: int = 2) -> Page:
    return Page(text, rows, len(text) * 2, 99, (Warning("cut_cells", 1, ("7",)),))


def test_a_second_claim_never_writes_into_the_first_ones_file(spool: FolderSpool, writer: FolderSegment) -> None:
    assert writer is not None
    with pytest.raises(Exception, match="FileExistsError"):
        spool.open_segment("exp_1", "a-1-x", shard_id="a", fence=1, sync_pages=False)


def test_a_zombie_finds_no_folder_after_a_removal(spool: FolderSpool, writer: FolderSegment) -> None:
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
        spool = FolderSpool(mount / "spool")
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


def test_files_are_for_the_owner_alone(spool: FolderSpool, writer: FolderSegment) -> None:
    writer.append(page(b"one"))
    assert (spool.folder("exp_1").stat().st_mode & 0o777, (spool.folder("exp_1") / "a-1-x").stat().st_mode & 0o777) == (
        0o700,
        0o600,
    )


def test_a_worker_is_proved_dead_only_when_its_process_is_gone(spool: FolderSpool) -> None:
    code = (
        "import sys, pathlib; from exports.storage.spool import FolderSpool; "
        "lock = FolderSpool(pathlib.Path(sys.argv[1])).stay_alive('host:w'); print('locked', flush=True); sys.stdin.read()"
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


def test_a_worker_that_starts_is_never_taken_for_dead(spool: FolderSpool) -> None:
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
