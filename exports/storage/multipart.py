"""One object sent in parts: several at a time, each recorded when the store has taken it, so that a kill costs only those
that were on their way.

An upload is bound to its key and to the digest of the artifact. Only parts of the record are ever completed: a list of
parts made by the store may show an older one.
"""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress

from exports.contracts import OpenUpload, StoredPart
from exports.errors import StoreUnavailable
from exports.storage.base import PartRecord, Source
from exports.storage.s3_bucket import Bucket, UploadGone, md5
from exports.telemetry import spans, trace

_PARTS_MAX = 10_000
_THREADS_MAX = 4
_FLYING_BYTES_MAX = 64 << 20
_FAILED_IN_A_ROW_MAX = 4

Parts = dict[int, StoredPart]
"""By number, from 1."""


def choose_part_size(size: int, *, least: int) -> int:
    """Bytes of a part of an object, such that 10,000 are enough.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
    """
    return max(least, -(-size // _PARTS_MAX))


def abort_all(bucket: Bucket, task_id: str) -> None:
    """End every open upload of a task, whoever began it."""
    for name, upload_id, _ in list(bucket.uploads(f"{task_id}/")):
        bucket.abort(name, upload_id)


def etag_of(parts: Parts) -> str:
    """The ETag of an object whose parts have these MD5s; where the store encrypts with a key of its own it has another."""
    whole = b"".join(bytes.fromhex(parts[number].md5) for number in sorted(parts))
    return f"{md5(whole)}-{len(parts)}"


class Upload:
    """One try to store an artifact: goes on with the upload of the record, or begins one."""

    def __init__(self, bucket: Bucket, key: str, source: Source, *, record: PartRecord, part_size: int) -> None:
        self._bucket = bucket
        self._key = key
        self._source = source
        self._record = record
        self._part_size = part_size

    def run(self) -> None:
        """Raises: StoreUnavailable when parts are still missing: all others have been tried, and are kept."""
        upload, parts = self._resumed() or (self._begin(), Parts())
        # An upload that is gone may have been completed: by us, and the answer was lost.
        with suppress(UploadGone):
            self._send_missing(upload, parts)
            self._bucket.complete(self._key, upload.upload_id, [parts[number].etag for number in sorted(parts)])
        if not self._is_stored(parts):
            self._begin()
            raise StoreUnavailable("the upload is gone")

    def _resumed(self) -> tuple[OpenUpload, Parts] | None:
        found = self._record.begun()
        if found is None or (found[0].key, found[0].sha256) != (self._key, self._source.sha256):
            return None
        return found[0], dict(found[1])

    def _begin(self) -> OpenUpload:
        """A new upload. Others of the task are aborted: of other bytes, or begun without the answer having arrived."""
        self._record.check()
        abort_all(self._bucket, self._key.partition("/")[0])
        upload_id = self._bucket.begin(self._key, sha256=self._source.sha256)
        upload = OpenUpload(self._key, self._source.sha256, upload_id, self._part_size)
        try:
            self._record.begin(upload)
        except Exception:
            with suppress(StoreUnavailable):
                self._bucket.abort(self._key, upload_id)
            raise
        return upload

    def _send_missing(self, upload: OpenUpload, parts: Parts) -> None:
        """Every part once. Those that fail are left for the next try, so that the others do not wait for them."""
        threads = max(1, min(_THREADS_MAX, _FLYING_BYTES_MAX // upload.part_size))
        with ThreadPoolExecutor(threads, thread_name_prefix="part") as pool:
            flight = _Flight(pool, parts, most=threads)
            for number, block in enumerate(self._source.blocks(upload.part_size), 1):
                if number not in parts or parts[number].md5 != md5(block):
                    flight.add(number, self._sender(upload, number, block))
            flight.land()

    def _sender(self, upload: OpenUpload, number: int, block: bytes) -> Callable[[], StoredPart]:
        parent = trace.current.get()

        def send() -> StoredPart:
            with spans.span("part", parent=parent, number=number):
                part = self._bucket.send(self._key, upload.upload_id, number, block)
                self._record.add(upload, number, part)
                return part

        return send

    def _is_stored(self, parts: Parts) -> bool:
        found = self._bucket.find(self._key)
        if found is None or (found.size, found.sha256) != (self._source.size, self._source.sha256):
            return False
        return any(part.etag != part.md5 for part in parts.values()) or found.etag == etag_of(parts)


class _Flight:
    """Parts on their way, `most` at a time. What a part raises but StoreUnavailable ends all."""

    def __init__(self, pool: ThreadPoolExecutor, parts: Parts, *, most: int) -> None:
        self._pool = pool
        self._parts = parts
        self._most = most
        self._flying: dict[Future[StoredPart], int] = {}
        self._failed: dict[int, StoreUnavailable] = {}
        self._failed_in_a_row = 0

    def add(self, number: int, send: Callable[[], StoredPart]) -> None:
        """Raises: StoreUnavailable when it is the store and not a part that fails."""
        if len(self._flying) == self._most:
            self._land_first()
        self._flying[self._pool.submit(send)] = number

    def land(self) -> None:
        """Wait for all. Raises: StoreUnavailable, naming the first part that failed."""
        while self._flying:
            self._land_first()
        if self._failed:
            self._give_up()

    def _land_first(self) -> None:
        for future in wait(self._flying, return_when=FIRST_COMPLETED).done:
            number = self._flying.pop(future)
            try:
                self._parts[number] = future.result()
                self._failed_in_a_row = 0
            except UploadGone:
                raise
            except StoreUnavailable as error:
                self._failed[number] = error
                self._failed_in_a_row += 1
        if self._failed_in_a_row >= _FAILED_IN_A_ROW_MAX:
            self._give_up()

    def _give_up(self) -> None:
        number = min(self._failed)
        raise StoreUnavailable(str(self._failed[number]), part=number) from self._failed[number]
