"""Finished files in a folder: temporary file, fsync, rename, fsync of the folder, a fixed name."""

import os
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from exports.errors import StoreUnavailable
from exports.storage import roots
from exports.storage.base import PartRecord, Source
from exports.storage.digest import CHUNK


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(type(error).__name__) from error


class FolderStore:
    """An `ArtifactStore` below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, key: str, source: Source, *, record: PartRecord) -> None:
        path = self._root / key
        with _translated():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}"
            try:
                _write_all(temporary, source)
                temporary.rename(path)
            finally:
                temporary.unlink(missing_ok=True)
            roots.remove_temporaries(path.parent, ".*")
            roots.sync_folder(path.parent)
            roots.sync_folder(self._root)

    def read(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        with (self._root / key).open("rb", buffering=0) as file:
            file.seek(offset)
            while length and (chunk := file.read(min(CHUNK, length))):
                length -= len(chunk)
                yield chunk

    def size(self, key: str) -> int | None:
        with _translated(), suppress(FileNotFoundError):
            return (self._root / key).stat().st_size
        return None

    def link(self, key: str, *, content_type: str, disposition: str) -> str | None:
        return None

    def delete(self, task_id: str, *, keep: Collection[str] = ()) -> None:
        folder, kept = self._root / task_id, {self._root / key for key in keep}
        with _translated():
            if not keep:
                roots.remove_folder(folder)
                return
            for path in folder.glob("*"):
                if path not in kept:
                    path.unlink(missing_ok=True)

    def task_ids(self) -> list[str]:
        with _translated(), suppress(FileNotFoundError):
            return sorted(path.name for path in self._root.iterdir() if path.is_dir() and path.name[0] != ".")
        return []

    def changed_at(self, task_id: str) -> float:
        with _translated():
            return roots.changed_at(self._root / task_id)

    def read_identity(self) -> str:
        with _translated():
            return roots.read_identity(self._root)

    def write_identity(self, identity: str) -> None:
        with _translated():
            roots.write_identity(self._root, identity)


def _write_all(path: Path, source: Source) -> None:
    """Write and force to disk."""
    with path.open("xb") as file:
        os.fchmod(file.fileno(), 0o600)
        for number, block in enumerate(source.blocks(CHUNK)):
            file.write(block)
            _begin_writeback(file.fileno(), number * CHUNK, len(block))
        file.flush()
        os.fsync(file.fileno())


def _begin_writeback(handle: int, offset: int, length: int) -> None:
    """Have Linux write a range to disk while the next is read; it leaves the cache then. Elsewhere `fsync` does it all.

    Source: generic_fadvise in mm/fadvise.c, which starts to write before it drops pages.
    """
    with suppress(OSError):
        os.posix_fadvise(handle, offset, length, os.POSIX_FADV_DONTNEED)
