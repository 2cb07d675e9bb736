"""Finished files in a folder: temporary file, fsync, rename, fsync of the folder, a fixed name."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from exports.errors import StepBroken, StoreUnavailable
from exports.storage import roots

_CHUNK = 1 << 20


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

    def put(self, key: str, *, size: int, read: Callable[[int, int], Iterator[bytes]]) -> None:
        path = self._root / key
        with _translated():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}"
            try:
                _write_all(temporary, read(0, size), size)
                temporary.rename(path)
            finally:
                temporary.unlink(missing_ok=True)
            roots.remove_temporaries(path.parent, ".*")
            roots.sync_folder(path.parent)
            roots.sync_folder(self._root)

    def read(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        with (self._root / key).open("rb", buffering=0) as file:
            file.seek(offset)
            while length and (chunk := file.read(min(_CHUNK, length))):
                length -= len(chunk)
                yield chunk

    def size(self, key: str) -> int | None:
        with _translated(), suppress(FileNotFoundError):
            return (self._root / key).stat().st_size
        return None

    def delete(self, task_id: str) -> None:
        with _translated():
            roots.remove_folder(self._root / task_id)

    def keep_only(self, key: str) -> None:
        kept = self._root / key
        with _translated():
            for path in kept.parent.glob("*"):
                if path != kept:
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


def _write_all(path: Path, chunks: Iterator[bytes], size: int) -> None:
    """Write and force to disk. Raises: StepBroken when the chunks are not `size` bytes."""
    written = 0
    with path.open("xb", buffering=0) as file:
        os.fchmod(file.fileno(), 0o600)
        for chunk in chunks:
            written += file.write(chunk)
        if written != size:
            raise StepBroken(f"{written} of {size} bytes")
        os.fsync(file.fileno())
