"""The manifest: what a file promises, what it holds and where, so that anybody can prove it later.

It lies beside its artifact. Nothing in it depends on clock, host or who renders. No cell of any row is in it but keys and
what the kind's bounds are made of, and none of these where the kind says that keys are personal data.
"""

import datetime as dt
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from exports import kinds
from exports.contracts import CommittedSegment, Drift, PageRecord, Recount, Shard, Snapshot
from exports.errors import StepBroken
from exports.pipeline import constants
from exports.pipeline.specification import specify
from exports.state.replies import Claim
from exports.state.store import store

Ranges = tuple[tuple[int, int], ...]
"""(offset, length) of runs of bytes of an artifact, in order."""


def key(object_key: str) -> str:
    """Where the manifest of an artifact lies."""
    return f"{object_key}.manifest.json"


def objects(object_key: str) -> tuple[str, str]:
    """All that a succeeded task has in the store."""
    return object_key, key(object_key)


@dataclass(frozen=True, slots=True)
class ShardEntry:
    """One shard of a file.

    keys: at plan; None where they are not told or there is none. raw_bytes: before compression. attempts: claims that wrote rows of it. page_rows: the smallest and the largest
    page, 0 without any. ranges: where its rows stand in the file. sha256: of those bytes, hex.
    """

    shard: Shard
    keys: tuple[str, str] | None
    rows: int
    raw_bytes: int
    attempts: int
    page_rows: tuple[int, int]
    drift: Recount
    ranges: Ranges
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """plain: everything else that its text tells, as JSON has it.

    keys_told: False where keys are personal data; the bounds of snapshot and shards are "" then.
    """

    plain: Mapping[str, Any]
    keys_told: bool
    snapshot: Snapshot
    shards: tuple[ShardEntry, ...]
    size: int
    sha256: str

    def dump(self) -> str:
        """One JSON text, the same for the same manifest."""
        whole = {
            **self.plain,
            "asOf": self.snapshot.as_of.astimezone(dt.UTC).isoformat(),
            "keysTold": self.keys_told,
            "snapshot": {"bounds": self.snapshot.bounds, "certain": self.snapshot.certain},
            "shards": [_plain(entry) for entry in self.shards],
            "rows": sum(entry.rows for entry in self.shards),
            "bytes": sum(entry.raw_bytes for entry in self.shards),
            "file": {"size": self.size, "sha256": self.sha256},
        }
        return json.dumps(whole, ensure_ascii=False, indent=1) + "\n"


def build(
    claim: Claim,
    segments: Sequence[CommittedSegment],
    pages: Sequence[Sequence[PageRecord]],
    *,
    lengths: Sequence[tuple[str, int]],
    sha256: str,
    of_shards: Mapping[str, str],
) -> Manifest:
    """The manifest of an artifact that is being rendered.

    pages: of each segment. lengths: (shard id, bytes) of each piece of the artifact in order, the id "" where the bytes
    are no shard's. of_shards: SHA-256 of each shard's bytes.
    """
    snapshot, shards = _planned(claim.ref.id)
    keys = {shard.id: kinds.get(claim.request.kind).keys(shard) for shard, _ in shards}
    keys_told = None not in keys.values()
    records: dict[str, list[PageRecord]] = {}
    for segment, found in zip(segments, pages, strict=True):
        records.setdefault(segment.shard_id, []).extend(found)
    attempts = Counter(segment.shard_id for segment in segments)
    ranges = _ranges(lengths)
    entries = [
        ShardEntry(
            shard=shard if keys_told else replace(shard, bounds=""),
            keys=_told(keys[shard.id]) if keys_told else None,
            rows=sum(page.rows for page in records.get(shard.id, [])),
            raw_bytes=sum(page.raw_length for page in records.get(shard.id, [])),
            attempts=attempts[shard.id],
            page_rows=_extremes([page.rows for page in records.get(shard.id, [])]),
            drift=drift,
            ranges=ranges.get(shard.id, ()),
            sha256=of_shards.get(shard.id, hashlib.sha256().hexdigest()),
        )
        for shard, drift in shards
    ]
    return Manifest(
        plain=_asked(claim),
        keys_told=keys_told,
        snapshot=snapshot if keys_told else replace(snapshot, bounds=""),
        shards=tuple(entries),
        size=sum(length for _, length in lengths),
        sha256=sha256,
    )


def _planned(task_id: str) -> tuple[Snapshot, list[tuple[Shard, Recount]]]:
    """What plan fixed, and how each shard ended."""
    plan = store().plan(task_id)
    shards = [
        (constants.load_shard(view.shard_id, plan[view.shard_id]), view.drift or Recount(Drift.UNKNOWN))
        for view in store().shards(task_id)
    ]
    return constants.load_snapshot(plan[""]), shards


def _told(keys: tuple[str, str] | None) -> tuple[str, str] | None:
    return keys if keys and any(keys) else None


def _extremes(rows: Sequence[int]) -> tuple[int, int]:
    return min(rows, default=0), max(rows, default=0)


def _ranges(lengths: Iterable[tuple[str, int]]) -> dict[str, Ranges]:
    """The runs of each shard's bytes; what lies side by side is one."""
    found: dict[str, list[tuple[int, int]]] = {}
    offset = 0
    for shard_id, length in lengths:
        if shard_id and length:
            runs = found.setdefault(shard_id, [])
            if runs and sum(runs[-1]) == offset:
                runs[-1] = (runs[-1][0], runs[-1][1] + length)
            else:
                runs.append((offset, length))
        offset += length
    return {shard_id: tuple(runs) for shard_id, runs in found.items()}


def _asked(claim: Claim) -> dict[str, Any]:
    """What the file is, whatever it holds."""
    request, specification = claim.request, specify(claim.request)
    return {
        "taskId": claim.ref.id,
        "kind": request.kind,
        "from": request.first_day.isoformat(),
        "to": request.last_day.isoformat(),
        "format": request.format,
        "zone": specification.zone,
        "specification": json.loads(specification.text()),
        "specificationSha256": specification.digest(),
    }


def _plain(entry: ShardEntry) -> dict[str, Any]:
    smallest, largest = entry.page_rows
    return {
        "shardId": entry.shard.id,
        "label": entry.shard.label,
        "firstKey": entry.keys[0] if entry.keys else None,
        "lastKey": entry.keys[1] if entry.keys else None,
        "bounds": entry.shard.bounds,
        "planned": entry.shard.planned,
        "rows": entry.rows,
        "drift": {"kind": entry.drift.drift, "difference": entry.drift.difference},
        "attempts": entry.attempts,
        "pageRows": {"smallest": smallest, "largest": largest},
        "bytes": entry.raw_bytes,
        "ranges": [{"offset": offset, "length": length} for offset, length in entry.ranges],
        "sha256": entry.sha256,
    }


def load(text: bytes) -> Manifest:
    """A manifest out of its text. Raises: StepBroken when it is not one."""
    try:
        return _loaded(json.loads(text))
    except (ValueError, KeyError, TypeError) as error:
        raise StepBroken("the manifest is damaged") from error


def _loaded(whole: dict[str, Any]) -> Manifest:
    snapshot = whole.pop("snapshot")
    file = whole.pop("file")
    return Manifest(
        keys_told=whole.pop("keysTold"),
        snapshot=Snapshot(dt.datetime.fromisoformat(whole.pop("asOf")), snapshot["bounds"], snapshot["certain"]),
        shards=tuple(map(_entry, whole.pop("shards"))),
        size=file["size"],
        sha256=file["sha256"],
        plain={name: value for name, value in whole.items() if name not in ("rows", "bytes")},
    )


def _entry(plain: Mapping[str, Any]) -> ShardEntry:
    return ShardEntry(
        shard=Shard(plain["shardId"], plain["label"], plain["bounds"], plain["planned"]),
        keys=(plain["firstKey"], plain["lastKey"]) if plain["firstKey"] is not None else None,
        rows=plain["rows"],
        raw_bytes=plain["bytes"],
        attempts=plain["attempts"],
        page_rows=(plain["pageRows"]["smallest"], plain["pageRows"]["largest"]),
        drift=Recount(Drift(plain["drift"]["kind"]), plain["drift"]["difference"]),
        ranges=tuple((run["offset"], run["length"]) for run in plain["ranges"]),
        sha256=plain["sha256"],
    )
