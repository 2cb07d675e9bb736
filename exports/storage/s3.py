"""Finished files in a bucket: one object each, sent in parts that survive a kill of anything."""

from collections.abc import Collection, Iterator
from contextlib import suppress

from exports.conf import Conf
from exports.storage import multipart
from exports.storage.base import PartRecord, Source
from exports.storage.s3_bucket import Bucket

_IDENTITY = "identity"
_MIB = 1 << 20
_CONNECTIONS = 16
"""As many as the web process has threads; a worker needs five."""


class S3Store:
    """An `ArtifactStore` in one bucket, under one prefix."""

    def __init__(self, settings: Conf) -> None:
        self._bucket = Bucket(settings, connections=_CONNECTIONS)
        self._part_size = settings.s3_part_mb * _MIB

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
        names = [name for name, _ in self._bucket.objects()] + [name for name, _, _ in self._bucket.uploads()]
        return sorted({name.partition("/")[0] for name in names if "/" in name})

    def changed_at(self, task_id: str) -> float:
        times = [at for _, at in self._bucket.objects(f"{task_id}/")]
        times += [at for _, _, at in self._bucket.uploads(f"{task_id}/")]
        return max(times, default=0.0)

    def read_identity(self) -> str:
        with suppress(FileNotFoundError):
            return b"".join(self._bucket.read(_IDENTITY, 0, _MIB)).decode("ascii").strip()
        return ""

    def write_identity(self, identity: str) -> None:
        self._bucket.put(_IDENTITY, f"{identity}\n".encode("ascii"))
