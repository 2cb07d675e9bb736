"""What a store of finished files is, and what a spool is. A contract suite runs over all of each."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from exports.contracts import CommittedSegment, OpenUpload, Page, PageRecord, StoredPart
from exports.errors import SegmentDamaged
from exports.storage.digest import Digest
from exports.storage.recipe import Piece, Recipe


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes of one artifact. read: (offset, length) → chunks of any range, any number of times."""

    size: int
    sha256: str
    read: Callable[[int, int], Iterator[bytes]]

    @classmethod
    def of(cls, data: bytes) -> "Source":
        """Bytes that are held in memory."""
        sha256 = hashlib.sha256(data).hexdigest()
        return cls(len(data), sha256, lambda offset, length: iter([data[offset : offset + length]]))

    def blocks(self, length: int) -> Iterator[bytes]:
        """All bytes in order, `length` at a time and the rest at last.

        Raises: SegmentDamaged behind the last block when the bytes are not those of `sha256`; whatever `read` raises.
        """
        with Digest() as digest:
            for offset in range(0, self.size, length):
                block = b"".join(self.read(offset, min(length, self.size - offset)))
                digest.update(block)
                yield block
            if digest.hexdigest() != self.sha256:
                raise SegmentDamaged(())


class PartRecord(Protocol):
    """Where a store that takes parts keeps what an upload needs to go on after a kill.

    What `check`, `begin` and `add` raise ends the upload. `add` is called by several threads.
    """

    def check(self) -> None:
        """Whether this process may still upload: one that may not must not abort its successor's."""

    def begun(self) -> tuple[OpenUpload, Mapping[int, StoredPart]] | None:
        """The upload that was begun last, and those of its parts that the store has taken."""

    def begin(self, upload: OpenUpload) -> None:
        """Keep this one instead; parts of an earlier one are forgotten."""

    def add(self, upload: OpenUpload, number: int, part: StoredPart) -> None:
        """Keep that the store has taken a part. number: from 1."""


class NoRecord:
    """Keeps nothing: an upload that is interrupted begins anew."""

    def check(self) -> None:
        pass

    def begun(self) -> None:
        return None

    def begin(self, upload: OpenUpload) -> None:
        pass

    def add(self, upload: OpenUpload, number: int, part: StoredPart) -> None:
        pass


class ArtifactStore(Protocol):
    """Keys look like `exp_…/r1-5f0c….csv`; all objects of a task lie under its id.

    Raises, all methods: StoreUnavailable when the store does not do what it is asked; it may later.
    """

    def put(self, key: str, source: Source, *, record: PartRecord) -> None:
        """Make one object of exactly these bytes, all or nothing, replacing.

        Raises: SegmentDamaged when the source does not have the bytes of its digest; what source and record raise.
        """

    def read(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Chunks of a range. Raises: FileNotFoundError when there is no such object."""

    def size(self, key: str) -> int | None:
        """Bytes of an object; None when there is none."""

    def link(self, key: str, *, content_type: str, disposition: str) -> str | None:
        """A URL under which the object may be read for a minute, without more; None where files are streamed.

        Never to be stored or logged. disposition: the value of `Content-Disposition`.
        """

    def delete(self, task_id: str, *, keep: Collection[str] = ()) -> None:
        """Remove every object of a task, finished or not, but those with these keys. Nothing to remove is fine."""

    def task_ids(self) -> list[str]:
        """Ids of all tasks that have an object, finished or not."""

    def changed_at(self, task_id: str) -> float:
        """Unix time of the last change to a task's objects; 0 when it has none."""

    def read_identity(self) -> str:
        """The identity of the Redis that this store belongs to; empty when nothing says so."""

    def write_identity(self, identity: str) -> None:
        """Say which Redis this store belongs to."""


class SegmentWriter(Protocol):
    """Appends the pages of one claim. What was appended and not committed does not count."""

    def append(self, page: Page) -> CommittedSegment:
        """Write one page behind the committed bytes; the answer counts once it is committed and `keep` is called."""

    def keep(self, committed: CommittedSegment) -> None:
        """The page was committed: later pages go behind it."""

    def sync(self) -> None:
        """Make what was written survive a power cut."""

    def close(self) -> None: ...


class Spool(Protocol):
    """Where segments rest until the task is published.

    id: its name, for good; workers with the same one share it. remote: whether calls cross a network, so that what must be quick leaves a removal to the sweep.

    Raises, all that a name below does not except: SpoolFull when there is no room, StepBroken for other errors of a
    disk, StoreUnavailable where the spool is a store.
    """

    id: str
    remote: bool

    def create(self, task_id: str) -> None:
        """Make a task's place; only plan does this, and a shard whose live task has lost it."""

    def remove(self, task_id: str) -> None:
        """Take away all that a task has. Nothing to remove is fine."""

    def task_ids(self) -> list[str]:
        """Ids of all tasks that have a place."""

    def changed_at(self, task_id: str) -> float:
        """Unix time of the last change to what a task has; 0 when it has nothing."""

    def read_identity(self) -> str:
        """The identity of the Redis that this spool belongs to; empty when nothing says so."""

    def write_identity(self, identity: str) -> None:
        """Say which Redis this spool belongs to."""

    def size(self) -> tuple[int, int] | None:
        """Bytes of all segments, and bytes free; None where to count would list a bucket. What goes meanwhile is not counted."""

    def has_room(self) -> bool:
        """Whether there is room for a large export too."""

    def open_segment(self, task_id: str, name: str, *, shard_id: str, fence: int, sync_pages: bool) -> SegmentWriter:
        """A new segment for one claim. Raises: SegmentDamaged when the task has no place."""

    def drop(self, task_id: str, names: Iterable[str]) -> None:
        """Remove segments that no longer count. Those that cannot be removed go with the task."""

    def pages(self, task_id: str, segment: CommittedSegment) -> Sequence[PageRecord]:
        """The committed pages of a segment, after one read of all its committed bytes.

        Raises: SegmentDamaged when something is missing, short, or not what was committed.
        """

    def read(self, task_id: str, piece: Piece) -> Iterator[bytes]:
        """Chunks of a range of a segment. Raises: OSError, EOFError when it is missing or too short."""

    def write_recipe(self, task_id: str, recipe: Recipe) -> None:
        """Keep the rendered artifact instead of an earlier one."""

    def read_recipe(self, task_id: str, *, sha256: str) -> Recipe:
        """The recipe of these bytes. Raises: SegmentDamaged (without shards) when there is none."""

    def stay_alive(self, worker: str) -> int | None:
        """Prove a worker alive for as long as this file descriptor is open; None where only leases tell."""

    def dead_workers(self) -> frozenset[str]:
        """All that are proved dead and not yet buried."""

    def bury(self, workers: Iterable[str]) -> None:
        """Forget workers that are gone."""
