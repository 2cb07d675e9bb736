"""Shard: a planned task in, the committed pages of one shard after another out; the last shard opens render.

Order of a page: read, encode, append to the claim's own segment, commit under the fence. A kill between any two of
them leaves bytes that do not count. A page too large for memory is read in halves; a database that does not answer
is asked again after 1, 4 and 16 s by whichever lane is free then.
"""

import functools
import time

import dramatiq

from exports import formats, kinds, storage
from exports.blocks import Block
from exports.conf import conf
from exports.contracts import Drift, Page, Recount, Shard, Step
from exports.errors import LeaseLost, PageTooLarge, SegmentDamaged, SpoolFull, StepBroken
from exports.formats.base import Encoder, OutputFormat
from exports.kinds.base import Kind
from exports.pipeline import constants, endings, hints, render, steps, workers
from exports.pipeline.specification import specify
from exports.pipeline.steps import GoOn, Holding
from exports.state.store import store
from exports.storage.base import SegmentWriter
from exports.telemetry import logs, spans

_events = logs.events(__name__)
SMALL_PAGES = 2
"""An export of at most so many pages is done by the process that planned it."""


class Reader:
    """Reads one shard from its cursor and halves pages that do not fit."""

    def __init__(self, held: Holding, kind: Kind, output: OutputFormat) -> None:
        claim = held.claim
        assert claim.record is not None
        specification = specify(claim.request)
        self._held = held
        self._kind = kind
        self._form = output.time_form
        self._masked = frozenset(specification.masked)
        self._encoder: Encoder = output.encoder(specification)
        self._page_rows = claim.record.page_rows
        self.shard: Shard = constants.load_shard(claim.name, claim.constants)
        self.cursor = claim.record.cursor
        self.read_ms = 0.0
        """What the last page took, if it was a full one: a short one tells nothing of the database."""

    def next_page(self) -> tuple[Block, Page | None]:
        """The page behind the cursor; no page at the end of the shard."""
        while True:
            try:
                began = time.monotonic()
                block = self._kind.read(self.shard, self.cursor, self._page_rows, self._form, self._masked)
                full = block.rows == conf().page_rows
                self.read_ms = (time.monotonic() - began) * 1000 if full else 0.0
                return block, self._encoder.page(block) if block.rows else None
            except (PageTooLarge, MemoryError):
                self._halve()

    def _halve(self) -> None:
        claim = self._held.claim
        word, smaller = store().halve_page(claim, page_rows=self._page_rows)
        if word != "ok":
            endings.settle(claim.ref.id, claim.request, word, code=PageTooLarge.code)
            raise LeaseLost
        _events.warning("page.halved", rows=smaller)
        self._page_rows = smaller


def fetch_shard(held: Holding) -> GoOn | None:
    """Read one shard from its cursor to its end."""
    claim = held.claim
    assert claim.record is not None
    kind = kinds.get(claim.request.kind)
    reader = Reader(held, kind, formats.get(claim.request.format))
    held.renew(begun=True)
    writer = _open_segment(held)
    _events.info("shard.started", cursor=reader.cursor, fence=claim.fence)
    rows = 0
    try:
        rows = _fetch_pages(held, reader, writer)
        if conf().spool_sync != "off":
            writer.sync()
        recount = _recount(held, kind, reader.shard, rows=claim.record.rows + rows)
        word = store().finish_shard(claim, recount)
        held.hear(word)
    finally:
        writer.close()
        _events.info("shard.ended", cursor=reader.cursor, fence=claim.fence, rows=rows)
    _events.info("shard.done", drift=str(recount.drift), difference=recount.difference)
    return _open_render(held) if word == "last" else None


def _fetch_pages(held: Holding, reader: Reader, writer: SegmentWriter) -> int:
    """Append and commit page after page; the rows written by this claim."""
    rows = 0
    while True:
        begun_at = time.monotonic()
        with spans.span("page"):
            block, page = reader.next_page()
            if page is None:
                return rows
            if block.last_key == reader.cursor:
                raise StepBroken("a page ended where it began")
            _leave_room(held)
            segment = writer.append(page)
        with spans.span("commit", rows=page.rows):
            word = store().commit(
                held.claim,
                old_cursor=reader.cursor,
                cursor=block.last_key,
                rows=page.rows,
                segment=segment,
                read_ms=reader.read_ms,
                took_ms=round((time.monotonic() - begun_at) * 1000),
            )
        if word != "lost":
            writer.keep(segment)
            reader.cursor = block.last_key
            rows += page.rows
        held.hear(word)
        held.check()


def _leave_room(held: Holding) -> None:
    """The last free space is for exports that a person waits for."""
    small = held.claim.planned_rows <= SMALL_PAGES * conf().page_rows
    if not small and not storage.spool().has_room():
        raise SpoolFull("the reserve for small exports is reached")


def _open_segment(held: Holding) -> SegmentWriter:
    """The claim's own segment. A live task whose place was lost gets a new one; a zombie has lost its lease before this."""
    claim = held.claim
    open_segment = functools.partial(
        storage.spool().open_segment,
        claim.ref.id,
        f"{claim.name}-{claim.fence}-{claim.claim_id[:12]}",
        shard_id=claim.name,
        fence=claim.fence,
        sync_pages=conf().spool_sync == "page",
    )
    try:
        return open_segment()
    except SegmentDamaged:
        held.renew()
        storage.spool().create(claim.ref.id)
        return open_segment()


def _recount(held: Holding, kind: Kind, shard: Shard, *, rows: int) -> Recount:
    """rows: written. Rows that were away while their page was read are drift, though the counts agree."""
    snapshot = constants.load_snapshot(store().snapshot(held.claim.ref.id))
    recount = kind.recount(shard, snapshot)
    if recount.drift is Drift.EXACT and rows != shard.planned:
        return Recount(Drift.CHANGED, rows - shard.planned)
    return recount


def _open_render(held: Holding) -> GoOn | None:
    """The last shard is done: render here, unless a finish process waits for exactly that."""
    if workers.current().group != "fast" and workers.idle("finish"):
        hints.send(hints.work(Step.RENDER, queue=held.claim.queue, spool=storage.spool().id))
        return None
    return GoOn(held.claim.ref, Step.RENDER, render.render_task)


@dramatiq.actor(actor_name=Step.SHARD, queue_name="shard")
def shard() -> None:
    steps.run_slice(Step.SHARD, fetch_shard)
