"""Render: a task whose shards are done in, its recipe and its manifest out; goes on with upload in the same process.

No file is written but the recipe: literal bytes and ranges of segments, and the text of the manifest. A segment whose committed bytes are not
what was committed sends its shard back to its first row.
"""

from collections.abc import Iterator, Sequence

import dramatiq

from exports import formats, storage
from exports.contracts import CommittedSegment, PageRecord, Step, Warning
from exports.errors import SegmentDamaged
from exports.formats.base import Literal, Range, SegmentPages
from exports.pipeline import manifest, steps, upload
from exports.pipeline.specification import specify
from exports.pipeline.steps import GoOn, Holding
from exports.state.replies import Claim
from exports.state.store import store
from exports.storage.digest import digests
from exports.storage.recipe import Piece, Recipe
from exports.telemetry import logs

_events = logs.events(__name__)
_KEYS_SHOWN = 5


def render_task(held: Holding) -> GoOn | None:
    """Check the segments, write the recipe, and upload it."""
    claim = held.claim
    segments = ordered(store().segments(claim.ref.id))
    pages = check_segments(held, segments)
    recipe = build_recipe(held, segments, pages)
    storage.spool().write_recipe(claim.ref.id, recipe)
    word = store().write_recipe(
        claim,
        size=recipe.size,
        sha256=recipe.sha256,
        object_key=object_key(claim, recipe),
        warnings=sum_warnings([record for records in pages for record in records]),
    )
    held.hear(word)
    _events.info("task.rendered", bytes=recipe.size, segments=len(segments))
    return GoOn(claim.ref, Step.UPLOAD, upload.upload_task)


def object_key(claim: Claim, recipe: Recipe) -> str:
    """Names the bytes too, so that a zombie with an older recipe cannot replace a published file."""
    return f"{claim.ref.id}/r{claim.epoch}-{recipe.sha256[:12]}.{formats.get(claim.request.format).extension}"


def ordered(segments: Sequence[CommittedSegment]) -> list[CommittedSegment]:
    """File order: shard by shard, each shard's claims by their fence."""
    return sorted(segments, key=lambda segment: (segment.shard_id, segment.fence))


def check_segments(held: Holding, segments: Sequence[CommittedSegment]) -> list[Sequence[PageRecord]]:
    """The committed pages of every segment. Raises: SegmentDamaged with every shard that must be read again."""
    spool, task_id = storage.spool(), held.claim.ref.id
    pages: list[Sequence[PageRecord]] = []
    damaged = short_shards(task_id, segments)
    for segment in segments:
        held.check()
        try:
            pages.append(spool.pages(task_id, segment))
        except SegmentDamaged as error:
            damaged.update(error.shard_ids)
    if damaged:
        raise SegmentDamaged(tuple(sorted(damaged)))
    return pages


def short_shards(task_id: str, segments: Sequence[CommittedSegment]) -> set[str]:
    """Shards whose segments hold another number of rows than their records say."""
    held_rows: dict[str, int] = {}
    for segment in segments:
        held_rows[segment.shard_id] = held_rows.get(segment.shard_id, 0) + segment.rows
    return {
        shard.shard_id for shard in store().shards(task_id) if shard.rows_written != held_rows.get(shard.shard_id, 0)
    }


def build_recipe(held: Holding, segments: Sequence[CommittedSegment], pages: Sequence[Sequence[PageRecord]]) -> Recipe:
    """The artifact's pieces, its size and its digest, and the manifest of its shards."""
    claim = held.claim
    named = (SegmentPages(segment.name, records) for segment, records in zip(segments, pages, strict=True))
    found = list(
        formats.get(claim.request.format).assemble(
            specify(claim.request),
            named,
            claim.as_of,
            lambda span: b"".join(storage.spool().read(claim.ref.id, _piece(span))),
        )
    )
    pieces = tuple(map(_piece, found))
    shard_ids = {segment.name: segment.shard_id for segment in segments}
    owners = [shard_ids.get(part.segment, "") for part in found]
    sha256, of_shards = digests((owner, _chunks(held, piece)) for owner, piece in zip(owners, pieces, strict=True))
    lengths = [(owner, piece.length) for owner, piece in zip(owners, pieces, strict=True)]
    proof = manifest.build(claim, segments, pages, lengths=lengths, sha256=sha256, of_shards=of_shards)
    return Recipe(pieces, proof.size, sha256, proof.dump())


def _chunks(held: Holding, piece: Piece) -> Iterator[bytes]:
    for chunk in storage.spool().read(held.claim.ref.id, piece) if piece.segment else (piece.data,):
        held.check()
        yield chunk


def _piece(found: Literal | Range) -> Piece:
    if isinstance(found, Literal):
        return Piece(len(found.data), data=found.data)
    return Piece(found.length, segment=found.segment, offset=found.offset)


def sum_warnings(records: Sequence[PageRecord]) -> list[Warning]:
    """One warning a code, with the keys of its first rows."""
    counts: dict[str, int] = {}
    rows: dict[str, list[str]] = {}
    for warning in (warning for record in records for warning in record.warnings):
        counts[warning.code] = counts.get(warning.code, 0) + warning.count
        rows.setdefault(warning.code, []).extend(warning.keys)
    return [Warning(code, count, tuple(rows[code][:_KEYS_SHOWN])) for code, count in sorted(counts.items())]


@dramatiq.actor(actor_name=Step.RENDER, queue_name="finish")
def render() -> None:
    steps.run_slice(Step.RENDER, render_task)
