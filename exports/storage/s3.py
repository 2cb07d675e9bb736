"""Finished files in a bucket: one object each, sent in parts that survive a kill of anything."""

from collections.abc import Collection, Iterator

from exports.contracts import TASK_PREFIX
from exports.storage import multipart, s3_roots
from exports.storage.base import PartRecord, Source
from exports.storage.s3_bucket import Bucket


class S3Store:
    """An `ArtifactStore` in one bucket, under one prefix. part_size: bytes, of files that need no larger ones."""

    def __init__(self, bucket: Bucket, *, part_size: int) -> None:
        self._bucket = bucket
        self._part_size = part_size

    def put(self, key: str, source: Source, *, record: PartRecord) -> None:
        part_size = multipart.choose_part_size(source.size, least=self._part_size)
        if source.size <= part_size:
            self._bucket.put(key, b"".join(source.blocks(part_size)), sha256=source.sha256)
        else:
            multipart.Upload(self._bucket, key, source, record=record, part_size=part_size).run()

    def read(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        return self._bucket.read(key, offset, length)

    def size(self, key: str) -> int | None:
        found = self._bucket.find(key)
        return found.size if found else None

    def link(self, key: str, *, content_type: str, disposition: str) -> str | None:
        return self._bucket.link(key, content_type=content_type, disposition=disposition)

    def delete(self, task_id: str, *, keep: Collection[str] = ()) -> None:
        multipart.abort_all(self._bucket, task_id)
        for name, _ in list(self._bucket.objects(f"{task_id}/")):
            if name not in keep:
                self._bucket.delete(name)

    def task_ids(self) -> list[str]:
        begun = {name.partition("/")[0] for name, _, _ in self._bucket.uploads(TASK_PREFIX)}
        return sorted(begun.union(s3_roots.task_ids(self._bucket)))

    def changed_at(self, task_id: str) -> float:
        begun = [at for _, _, at in self._bucket.uploads(f"{task_id}/")]
        return max([*begun, s3_roots.changed_at(self._bucket, task_id)])

    def read_identity(self) -> str:
        return s3_roots.read_identity(self._bucket)

    def write_identity(self, identity: str) -> None:
        s3_roots.write_identity(self._bucket, identity)
