"""What a store of finished files is. One contract suite runs over every one of them."""

from collections.abc import Callable, Iterator
from typing import Protocol


class ArtifactStore(Protocol):
    """Keys look like `exp_…/r1.csv`; all objects of a task lie under its id.

    Raises, all methods: StoreUnavailable when the store does not do what it is asked; it may later.
    """

    def put(self, key: str, *, size: int, read: Callable[[int, int], Iterator[bytes]]) -> None:
        """Make one object of exactly `size` bytes, all or nothing, replacing. read: (offset, length) → chunks."""

    def read(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Chunks of a range. Raises: FileNotFoundError when there is no such object."""

    def size(self, key: str) -> int | None:
        """Bytes of an object; None when there is none."""

    def delete(self, task_id: str) -> None:
        """Remove every object of a task, finished or not. Nothing to remove is fine."""

    def keep_only(self, key: str) -> None:
        """Remove every other object of the key's task, finished or not. Nothing to remove is fine."""

    def task_ids(self) -> list[str]:
        """Ids of all tasks that have an object."""

    def changed_at(self, task_id: str) -> float:
        """Unix time of the last change to a task's objects; 0 when it has none."""

    def read_identity(self) -> str:
        """The identity of the Redis that this store belongs to; empty when nothing says so."""

    def write_identity(self, identity: str) -> None:
        """Say which Redis this store belongs to."""
