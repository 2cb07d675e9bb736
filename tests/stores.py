"""What the tests of the stores have in common: bytes to store, and a record of parts that lives in the test."""

import hashlib
import random
from collections.abc import Iterator, Mapping

from exports.contracts import OpenUpload, StoredPart
from exports.storage.base import Source

MIB = 1 << 20
CHUNK = 1 << 20


def some_bytes(size: int, *, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def source_of(data: bytes, *, sha256: str = "") -> Source:
    def read(offset: int, length: int) -> Iterator[bytes]:
        for at in range(offset, offset + length, CHUNK):
            yield data[at : min(at + CHUNK, offset + length)]

    return Source(len(data), sha256 or hashlib.sha256(data).hexdigest(), read)


class MemoryRecord:
    """A `PartRecord` that outlives a store, as Redis does. `refuse` is raised by all that write, and by `check`."""

    def __init__(self) -> None:
        self.upload: OpenUpload | None = None
        self.parts: dict[int, StoredPart] = {}
        self.refuse: Exception | None = None

    def check(self) -> None:
        self._may()

    def begun(self) -> tuple[OpenUpload, Mapping[int, StoredPart]] | None:
        return (self.upload, dict(self.parts)) if self.upload else None

    def begin(self, upload: OpenUpload) -> None:
        self._may()
        self.upload, self.parts = upload, {}

    def add(self, upload: OpenUpload, number: int, part: StoredPart) -> None:
        self._may()
        assert upload == self.upload
        self.parts[number] = part

    def _may(self) -> None:
        if self.refuse:
            raise self.refuse
