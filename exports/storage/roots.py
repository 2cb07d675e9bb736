"""What the roots of spool and store have in common: the identity file, and when a task's files last changed."""

import os
import shutil
import uuid
from contextlib import suppress
from pathlib import Path

_NAME = "identity"


def read_identity(root: Path) -> str:
    """The identity of the Redis that a root belongs to; empty when nothing says so."""
    with suppress(FileNotFoundError):
        return (root / _NAME).read_text("ascii").strip()
    return ""


def write_identity(root: Path, identity: str) -> None:
    """Say which Redis a root belongs to, for good."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = root / f".{_NAME}.{uuid.uuid4().hex}"
    temporary.write_text(f"{identity}\n", "ascii")
    temporary.rename(root / _NAME)
    sync_folder(root)


def changed_at(folder: Path) -> float:
    """Unix time of the last change in a folder; 0 when it is gone."""
    times = [0.0]
    with suppress(FileNotFoundError):
        times += [path.stat().st_mtime for path in (folder, *folder.rglob("*"))]
    return max(times)


def sync_folder(folder: Path) -> None:
    """Make new and renamed names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_folder(folder: Path) -> None:
    """Take a folder away at once, then free it, and what an earlier removal that was killed has left. Raises: OSError."""
    with suppress(FileNotFoundError):
        folder.rename(folder.with_name(f".{folder.name}.{uuid.uuid4().hex}"))
    for grave in folder.parent.glob(f".{folder.name}.*"):
        with suppress(FileNotFoundError):
            shutil.rmtree(grave)
