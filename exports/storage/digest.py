"""SHA-256 of a stream, counted on other cores while the first reads or writes the next chunk."""

import hashlib
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

CHUNK = 2 << 20
"""Bytes to read at a time: of smaller chunks a digest takes a third longer, since its threads wait for each other at each."""


class Digest:
    """Use as a context manager; it owns its threads. hashlib works outside the interpreter's lock."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="digest")
        self._counting: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def update(self, chunk: bytes, part: "hashlib._Hash | None" = None) -> None:
        """Count a chunk, also in the digest of a part; waits for the one before, so that two are held at most."""
        self._wait()
        hashes = [self._sha256, part] if part else [self._sha256]
        self._counting = [self._pool.submit(one.update, chunk) for one in hashes]

    def hexdigest(self) -> str:
        self._wait()
        return self._sha256.hexdigest()

    def _wait(self) -> None:
        for counting in self._counting:
            counting.result()


def digests(parts: Iterable[tuple[str, Iterable[bytes]]]) -> tuple[str, dict[str, str]]:
    """SHA-256 of all bytes, and of those of each owner, hex, in one pass.

    parts: (owner, chunks) in the order of the bytes; the owner of bytes that are nobody's is "".
    """
    owned: dict[str, hashlib._Hash] = {}
    with Digest() as digest:
        for owner, chunks in parts:
            part = owned.setdefault(owner, hashlib.sha256()) if owner else None
            for chunk in chunks:
                digest.update(chunk, part)
        return digest.hexdigest(), {owner: part.hexdigest() for owner, part in owned.items()}
