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
    write_text(root / _NAME, f"{identity}\n")


def own_id(root: Path) -> str:
    """The name of a root, made at the first look. Who looks at the same moment gets the same."""
    path, proposed = root / "id", root / f".id.{uuid.uuid4().hex}"
    if not path.exists():
        proposed.write_text(uuid.uuid4().hex[:12], "ascii")
        with suppress(FileExistsError):
            path.hardlink_to(proposed)
        proposed.unlink()
    return path.read_text("ascii")


def write_text(path: Path, text: str) -> None:
    """A small ASCII file, whole or not at all, also after a power cut; what killed writers of it have left goes."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with temporary.open("w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)
    remove_temporaries(path.parent, f".{path.name}.*")
    sync_folder(path.parent)


def remove_temporaries(folder: Path, pattern: str) -> None:
    """What killed writers have left. One that was only frozen finds its own gone, and tries again if it still may."""
    for left in folder.glob(pattern):
        left.unlink(missing_ok=True)


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
