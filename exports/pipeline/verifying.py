"""Verify: a finished file and its manifest in, what no longer agrees out. Reads only; changes nothing.

Every shard is counted again by the rule and bounds of its plan, and its bytes in the file are hashed again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from exports import kinds, storage
from exports.contracts import Drift, Snapshot
from exports.pipeline import manifest
from exports.pipeline.manifest import Manifest, ShardEntry
from exports.storage.digest import digests
from exports.views import TaskView


@dataclass(frozen=True, slots=True)
class ShardProof:
    """faults, of which none is right: `rows` (the database has another number), `keys` (as many, but others), `bytes`
    (the file is damaged here), `uncounted` (the database took too long), `personal` (keys are personal data and not in
    the manifest, so nothing can be counted).

    rows_now: in the database; None when it was not counted.
    """

    shard_id: str
    rows: int
    rows_now: int | None
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """faults of the whole: `file` (other bytes than were published), `manifest` (it tells of another file)."""

    shards: tuple[ShardProof, ...]
    faults: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.faults and not any(shard.faults for shard in self.shards)


def verify(view: TaskView, text: bytes) -> Proof:
    """text: of the manifest. Raises: StepBroken when it is none; SourceUnavailable, StoreUnavailable."""
    found = manifest.load(text)
    sha256, of_shards = digests(_parts(view.object_key, found))
    faults = []
    if sha256 != view.sha256 or storage.artifacts().size(view.object_key) != view.file_size:
        faults.append("file")
    if (found.sha256, found.size) != (view.sha256, view.file_size):
        faults.append("manifest")
    shards = tuple(_prove(view, entry, found, of_shards.get(entry.shard.id)) for entry in found.shards)
    return Proof(shards, tuple(faults))


def _parts(object_key: str, found: Manifest) -> Iterator[tuple[str, Iterator[bytes]]]:
    """All bytes of a file, once and in order, by the shard that they belong to."""
    artifacts = storage.artifacts()
    size = artifacts.size(object_key) or 0
    runs = sorted((offset, length, entry.shard.id) for entry in found.shards for offset, length in entry.ranges)
    end = 0
    for offset, length, shard_id in [*runs, (size, 0, "")]:
        for owner, start, stop in (("", end, offset), (shard_id, max(end, offset), offset + length)):
            if start < min(stop, size):
                yield owner, artifacts.read(object_key, start, min(stop, size) - start)
        end = max(end, offset + length)


def _prove(view: TaskView, entry: ShardEntry, found: Manifest, sha256: str | None) -> ShardProof:
    rows_now, fault = _count(view, entry, found.snapshot) if found.keys_told else (None, "personal")
    damaged = bool(entry.ranges) and sha256 != entry.sha256
    faults = [fault] if fault else []
    return ShardProof(entry.shard.id, entry.rows, rows_now, (*faults, "bytes") if damaged else tuple(faults))


def _count(view: TaskView, entry: ShardEntry, snapshot: Snapshot) -> tuple[int | None, str]:
    """Rows in the database now, and what is wrong with them."""
    shard = entry.shard
    # Whether older transactions were over at plan says nothing about the count of now.
    now = kinds.get(view.request.kind).recount(shard, Snapshot(snapshot.as_of, snapshot.bounds))
    if now.drift is Drift.UNKNOWN:
        return None, "uncounted"
    rows_now = shard.planned + now.difference
    if rows_now != entry.rows:
        return rows_now, "rows"
    if now.drift is Drift.CHANGED and entry.drift.drift is not Drift.CHANGED:
        return rows_now, "keys"
    return rows_now, ""
