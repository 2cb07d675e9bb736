"""The demo's folder: what lies where, the passwords made once, and the lock that keeps it to one demo at a time."""

import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_LOCK_WAIT_S = 10.0


class DemoError(Exception):
    """The demo cannot go on; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Passwords:
    secret_key: str
    valkey: str
    owner: str
    reader: str
    storage: str
    operator: str


class Place:
    """One folder. Absolute, and made where it is missing; only its owner may read the passwords in it."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        for name in ("run", "logs", "valkey", "downloads"):
            (self.root / name).mkdir(parents=True, exist_ok=True)

    def passwords(self) -> Passwords:
        """The servers' passwords, the operator's and the key of the download links; the same at every start."""
        path = self.root / "passwords.json"
        kept = json.loads(path.read_text("ascii")) if path.exists() else {}
        missing = {name: _secret(name) for name in Passwords.__slots__ if name not in kept}
        if missing:
            write_private(path, json.dumps(kept | missing))
        return Passwords(**kept, **missing)

    def pid_file(self, name: str) -> Path:
        return self.root / "run" / f"{name}.pid"

    def forget_pids(self) -> None:
        """Nothing of an earlier demo runs once the folder is locked; its numbers may be strangers' by now."""
        for path in (self.root / "run").glob("*.pid"):
            path.unlink()

    def log(self, name: str) -> Path:
        return self.root / "logs" / f"{name}.log"

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Hold the folder. The descriptor is handed to every child, so that the lock outlives a killed supervisor
        for as long as one of them still runs.

        Raises: DemoError when another demo holds it.
        """
        handle = os.open(self.root / "run" / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._lock(handle)
            yield handle
        finally:
            os.close(handle)

    def _lock(self, handle: int) -> None:
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise DemoError(f"another demo uses {self.root}; its process ids are in run/*.pid") from None
                time.sleep(0.1)


def _secret(name: str) -> str:
    """128 random bits and more; half of that for the one that people type."""
    return secrets.token_hex(8 if name == "operator" else 32)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, all or nothing."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600, exist_ok=False)
    temporary.write_text(text, "utf-8")
    temporary.rename(path)
