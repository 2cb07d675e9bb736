"""The spool of one host, or of hosts that share a disk: one folder a task, one file a claim.

    <root>/id                           names this spool
    <root>/identity                     names the Redis that this spool belongs to
    <root>/alive/<worker>               locked for the life of a worker
    <root>/tasks/<task>/<segment>       bytes of one claim
    <root>/tasks/<task>/<segment>.pages one line of JSON a page
    <root>/tasks/<task>/recipe.json     the rendered artifact

Only `create` makes a task's folder, and `remove` renames it first: a woken zombie finds nothing to write into.
Raises, all that write: SpoolFull when the disk or a quota is full, StepBroken for other errors of the disk.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from exports.contracts import CommittedSegment, Page, PageRecord
from exports.errors import SegmentDamaged, SpoolFull, StepBroken
from exports.storage import recipe as recipes
from exports.storage import roots, segments
from exports.storage.digest import CHUNK
from exports.storage.recipe import Piece, Recipe

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def translated() -> Iterator[None]:
    """Errors of the disk as errors of the export."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise SpoolFull(os.strerror(error.errno)) from error
        raise StepBroken(type(error).__name__) from error


class FolderSegment:
    """A `SegmentWriter` into one file. What lies behind the last `append` that was committed does not count.

    sync_pages: force every page to disk.
    """

    def __init__(self, folder: Path, name: str, *, shard_id: str, fence: int, sync_pages: bool) -> None:
        self._committed = CommittedSegment(name, shard_id, fence, pages=0, rows=0, length=0, crc=0)
        self._sync_pages = sync_pages
        self._unnamed: Path | None = folder
        with translated():
            self._bytes = _create(folder / name)
            try:
                self._lines = _create(folder / f"{name}.pages")
            except OSError:
                os.close(self._bytes)
                raise
        self._lines_length = 0

    def append(self, page: Page) -> CommittedSegment:
        """Write one page behind the committed bytes; the answer counts once it is committed and `keep` is called."""
        line = segments.line_of(page)
        try:
            with translated():
                self.cut()
                _write(self._bytes, page.data)
                _write(self._lines, line)
        except SpoolFull:
            # A disk that refuses this too keeps bytes that do not count.
            with suppress(OSError):
                self.cut()
            raise
        if self._sync_pages:
            self.sync()
        return segments.grown(self._committed, page, line)

    def keep(self, committed: CommittedSegment) -> None:
        """The page was committed: later pages go behind it."""
        self._committed = committed
        self._lines_length = os.fstat(self._lines).st_size

    def cut(self) -> None:
        """Take back what was written but not committed."""
        for handle, length in ((self._bytes, self._committed.length), (self._lines, self._lines_length)):
            os.ftruncate(handle, length)
            os.lseek(handle, length, os.SEEK_SET)

    def sync(self) -> None:
        """Make what was written, and the names of its files, survive a power cut."""
        with translated():
            os.fdatasync(self._bytes)
            os.fdatasync(self._lines)
            if self._unnamed:
                roots.sync_folder(self._unnamed)
                self._unnamed = None

    def close(self) -> None:
        for handle in (self._bytes, self._lines):
            os.close(handle)


def _create(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


class FolderSpool:
    """A `Spool` in one folder tree. reserve_bytes: free space that `has_room` leaves alone."""

    remote = False

    def __init__(self, root: Path, *, reserve_bytes: int = 0) -> None:
        self.root = root
        self._reserve = reserve_bytes
        with translated():
            for folder in (root / "tasks", root / "alive"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.id = roots.own_id(root)

    # --- a task's folder -------------------------------------------------------------------

    def folder(self, task_id: str) -> Path:
        return self.root / "tasks" / task_id

    def create(self, task_id: str) -> None:
        with translated():
            self.folder(task_id).mkdir(mode=0o700, exist_ok=True)
            roots.sync_folder(self.root / "tasks")

    def remove(self, task_id: str) -> None:
        with translated():
            roots.remove_folder(self.folder(task_id))

    def task_ids(self) -> list[str]:
        return sorted(path.name for path in (self.root / "tasks").iterdir() if not path.name.startswith("."))

    def changed_at(self, task_id: str) -> float:
        with translated():
            return roots.changed_at(self.folder(task_id))

    def read_identity(self) -> str:
        with translated():
            return roots.read_identity(self.root)

    def write_identity(self, identity: str) -> None:
        with translated():
            roots.write_identity(self.root, identity)

    def size(self) -> tuple[int, int]:
        used = 0
        for task_id in self.task_ids():
            with suppress(FileNotFoundError), os.scandir(self.folder(task_id)) as files:
                used += sum(file.stat().st_size for file in files)
        return used, shutil.disk_usage(self.root).free

    def has_room(self) -> bool:
        """Whether more than the reserve is free."""
        with translated():
            return shutil.disk_usage(self.root).free > self._reserve

    # --- segments --------------------------------------------------------------------------

    def open_segment(self, task_id: str, name: str, *, shard_id: str, fence: int, sync_pages: bool) -> FolderSegment:
        """A new file for one claim. Raises: SegmentDamaged when the task's folder is gone."""
        folder = self.folder(task_id)
        if not folder.is_dir():
            raise SegmentDamaged((shard_id,))
        return FolderSegment(folder, name, shard_id=shard_id, fence=fence, sync_pages=sync_pages)

    def drop(self, task_id: str, names: Iterable[str]) -> None:
        for name in names:
            with suppress(OSError):
                (self.folder(task_id) / name).unlink(missing_ok=True)
                (self.folder(task_id) / f"{name}.pages").unlink(missing_ok=True)

    def pages(self, task_id: str, segment: CommittedSegment) -> Sequence[PageRecord]:
        try:
            sidecar = (self.folder(task_id) / f"{segment.name}.pages").read_bytes()
            lines = sidecar.splitlines(keepends=True)[: segment.pages]
            records = [segments.record_of(line) for line in lines]
            crc = self._crc(task_id, segment.name, list(zip(records, lines, strict=True)))
        except (OSError, EOFError, ValueError, TypeError) as error:
            raise SegmentDamaged((segment.shard_id,)) from error
        segments.check(segment, records, crc=crc)
        return records

    def _crc(self, task_id: str, name: str, pages: Sequence[tuple[PageRecord, bytes]]) -> int:
        """CRC-32 over every page's bytes and its line of the sidecar, as `append` counts it."""
        crc = 0
        with (self.folder(task_id) / name).open("rb", buffering=0) as file:
            for record, line in pages:
                data = file.read(record.length)
                if len(data) != record.length:
                    raise EOFError(name)
                crc = segments.count(crc, data, line)
        return crc

    def read(self, task_id: str, piece: Piece) -> Iterator[bytes]:
        with (self.folder(task_id) / piece.segment).open("rb", buffering=0) as file:
            file.seek(piece.offset)
            left = piece.length
            while left:
                chunk = file.read(min(CHUNK, left))
                if not chunk:
                    raise EOFError(piece.segment)
                left -= len(chunk)
                yield chunk

    # --- the recipe ------------------------------------------------------------------------

    def write_recipe(self, task_id: str, recipe: Recipe) -> None:
        with translated():
            roots.write_text(self.folder(task_id) / "recipe.json", recipe.dump())

    def read_recipe(self, task_id: str, *, sha256: str) -> Recipe:
        try:
            text = (self.folder(task_id) / "recipe.json").read_bytes()
        except OSError as error:
            raise SegmentDamaged(()) from error
        return recipes.load(text, sha256=sha256)

    # --- who is alive ----------------------------------------------------------------------

    def stay_alive(self, worker: str) -> int:
        """Lock a worker's file for as long as this file descriptor is open; the kernel unlocks it with the process.

        The file gets its name when it is locked: one that is found unlocked is a dead worker's.
        """
        unlocked = self.root / "alive" / f".{worker}"
        handle = os.open(unlocked, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        unlocked.rename(self.root / "alive" / worker)
        return handle

    def proved_dead(self, worker: str) -> bool:
        """Whether a worker that locked its file here is gone. False when nothing is known."""
        try:
            with (self.root / "alive" / worker).open("rb") as file:
                # Shared: two sweeps that ask at the same moment must not take each other for the worker.
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def dead_workers(self) -> frozenset[str]:
        """All that are proved dead and not yet buried."""
        names = [path.name for path in (self.root / "alive").iterdir()]
        return frozenset(name for name in names if not name.startswith(".") and self.proved_dead(name))

    def bury(self, workers: Iterable[str]) -> None:
        """Remove the files of workers that are gone."""
        for worker in workers:
            (self.root / "alive" / worker).unlink(missing_ok=True)
