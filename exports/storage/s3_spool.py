"""The spool in the bucket of the files: whatever host it runs on, a worker goes on with any shard and renders any task.

    spool/identity                     names the Redis that this spool belongs to
    spool/<task>/made                  only `create` makes it
    spool/<task>/<segment>/<offset>    the page that begins at this byte of the segment; behind it its record as a line
    spool/<task>/recipe.json           the rendered artifact

A page is one object, there whole or not at all: an `append` that was answered is safe, and one whose page is not
committed lies behind the committed length, where nobody looks. Nobody can lock an object: only leases tell who is alive.
A zombie may leave objects behind a removal; the sweep removes again when its lease is over.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import TypeVar

from exports.contracts import CommittedSegment, Page, PageRecord
from exports.errors import SegmentDamaged, StoreUnavailable
from exports.storage import recipe as recipes
from exports.storage import s3_roots, segments
from exports.storage.recipe import Piece, Recipe
from exports.storage.s3_bucket import Bucket

_ROOT = "spool/"
_CALLS = 4
"""At the same time: a page is small, and the way to the store is what takes time."""

A = TypeVar("A")
B = TypeVar("B")


def ahead(call: Callable[[A], B], values: Iterable[A]) -> Iterator[B]:
    """The answers in order, some calls ahead of whoever takes them. Raises: what a call raises."""
    with ThreadPoolExecutor(_CALLS, thread_name_prefix="spool") as pool:
        flying: deque[Future[B]] = deque()
        for value in values:
            flying.append(pool.submit(call, value))
            if len(flying) > _CALLS:
                yield flying.popleft().result()
        while flying:
            yield flying.popleft().result()


class S3Segment:
    """A `SegmentWriter` of one object a page. folder: where its objects lie."""

    def __init__(self, bucket: Bucket, folder: str, empty: CommittedSegment) -> None:
        self._bucket = bucket
        self._folder = folder
        self._committed = empty

    def append(self, page: Page) -> CommittedSegment:
        line = segments.line_of(page)
        self._bucket.put(_page(self._folder, self._committed.length), page.data + line)
        return segments.grown(self._committed, page, line)

    def keep(self, committed: CommittedSegment) -> None:
        self._committed = committed

    def sync(self) -> None:
        """Every page that was answered for is safe already."""

    def close(self) -> None:
        """Nothing is open."""


class S3Spool:
    """A `Spool` in a bucket, under `spool/`."""

    id = "s3"
    remote = True

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    # --- a task's objects --------------------------------------------------------------------

    def create(self, task_id: str) -> None:
        self._bucket.put(_made(task_id), b"")

    def remove(self, task_id: str) -> None:
        self._delete_all(f"{_ROOT}{task_id}/")

    def task_ids(self) -> list[str]:
        return sorted(s3_roots.task_ids(self._bucket, _ROOT))

    def changed_at(self, task_id: str) -> float:
        return s3_roots.changed_at(self._bucket, task_id, _ROOT)

    def read_identity(self) -> str:
        return s3_roots.read_identity(self._bucket, _ROOT)

    def write_identity(self, identity: str) -> None:
        s3_roots.write_identity(self._bucket, identity, _ROOT)

    def size(self) -> None:
        return None

    def has_room(self) -> bool:
        """A bucket has no end."""
        return True

    def _delete_all(self, under: str) -> None:
        for _ in ahead(self._bucket.delete, [name for name, _ in self._bucket.objects(under)]):
            pass

    # --- segments ----------------------------------------------------------------------------

    def open_segment(self, task_id: str, name: str, *, shard_id: str, fence: int, sync_pages: bool) -> S3Segment:
        if self._bucket.find(_made(task_id)) is None:
            raise SegmentDamaged((shard_id,))
        empty = CommittedSegment(name, shard_id, fence, pages=0, rows=0, length=0, crc=0)
        return S3Segment(self._bucket, _folder(task_id, name), empty)

    def drop(self, task_id: str, names: Iterable[str]) -> None:
        with suppress(StoreUnavailable):
            for name in names:
                self._delete_all(_folder(task_id, name))

    def pages(self, task_id: str, segment: CommittedSegment) -> Sequence[PageRecord]:
        records: list[PageRecord] = []
        crc = 0
        try:
            for start, end, body in self._bodies(_folder(task_id, segment.name), 0, segment.length):
                data, line = body[: end - start], body[end - start :]
                records.append(segments.record_of(line))
                crc = segments.count(crc, data, line)
        except (FileNotFoundError, ValueError, TypeError) as error:
            raise SegmentDamaged((segment.shard_id,)) from error
        segments.check(segment, records, crc=crc)
        return records

    def read(self, task_id: str, piece: Piece) -> Iterator[bytes]:
        low, high = piece.offset, piece.offset + piece.length
        left = piece.length
        for start, end, body in self._bodies(_folder(task_id, piece.segment), low, high):
            chunk = body[max(0, low - start) : end - start]
            left -= len(chunk)
            yield chunk
        if left:
            raise EOFError(piece.segment)

    def _bodies(self, folder: str, low: int, high: int) -> Iterator[tuple[int, int, bytes]]:
        """Each page with bytes from `low` up to `high`: where it begins, where it ends or `high`, and its object."""
        starts = sorted(int(name.removeprefix(folder)) for name, _ in self._bucket.objects(folder))
        spans = [span for span in pairwise([*(start for start in starts if start < high), high]) if span[1] > low]
        bodies = ahead(self._bucket.get, [_page(folder, start) for start, _ in spans])
        for (start, end), body in zip(spans, bodies, strict=True):
            yield start, end, body

    # --- the recipe --------------------------------------------------------------------------

    def write_recipe(self, task_id: str, recipe: Recipe) -> None:
        self._bucket.put(_recipe(task_id), recipe.dump().encode("ascii"))

    def read_recipe(self, task_id: str, *, sha256: str) -> Recipe:
        try:
            text = self._bucket.get(_recipe(task_id))
        except FileNotFoundError as error:
            raise SegmentDamaged(()) from error
        return recipes.load(text, sha256=sha256)

    # --- who is alive ------------------------------------------------------------------------

    def stay_alive(self, worker: str) -> None:
        return None

    def dead_workers(self) -> frozenset[str]:
        return frozenset()

    def bury(self, workers: Iterable[str]) -> None:
        """Nobody is proved dead."""


def _made(task_id: str) -> str:
    return f"{_ROOT}{task_id}/made"


def _recipe(task_id: str) -> str:
    return f"{_ROOT}{task_id}/recipe.json"


def _folder(task_id: str, segment: str) -> str:
    return f"{_ROOT}{task_id}/{segment}/"


def _page(folder: str, offset: int) -> str:
    return f"{folder}{offset:015d}"
