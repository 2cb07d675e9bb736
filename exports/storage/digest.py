"""SHA-256 of a stream, counted on a second core while the first reads or writes the next chunk."""

import hashlib
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self


class Digest:
    """Use as a context manager; it owns a thread. hashlib works outside the interpreter's lock."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="digest")
        self._last: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def update(self, chunk: bytes) -> None:
        """Count a chunk; waits for the one before, so that two are held at most."""
        self._wait()
        self._last = self._pool.submit(self._sha256.update, chunk)

    def hexdigest(self) -> str:
        self._wait()
        return self._sha256.hexdigest()

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()
