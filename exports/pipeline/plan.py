"""Plan: a queued task in, its frozen snapshot and shards out; a small task is then done in the same process.

Each result is kept as it comes, so that a plan that is taken over goes on where it was. A task with more rows than
allowed fails with `row_limit`; a database that does not answer is asked again after 1, 4 and 16 s.
"""

import datetime as dt
import re

import dramatiq

from exports import formats, kinds, storage
from exports.conf import conf
from exports.contracts import QueueName, Shard, Snapshot, Step
from exports.errors import StepBroken, StepFailed
from exports.pipeline import constants, hints, render, shard, steps
from exports.pipeline.specification import specify
from exports.pipeline.steps import GoOn, Holding
from exports.state.store import store
from exports.telemetry import logs

_events = logs.events(__name__)
_SHARD_ID = re.compile(r"[\w.@+-]{1,100}")


class TooManyRows(StepFailed):
    code = "row_limit"


def plan_task(held: Holding) -> GoOn | None:
    """Freeze which rows the file holds, and open its shards."""
    claim = held.claim
    known = store().plan(claim.ref.id)
    snapshot = _snapshot(held, known)
    _refuse_odd_names(kinds.get(claim.request.kind).shard_ids(claim.request))
    shards = [
        _shard(held, known, snapshot, shard_id) for shard_id in kinds.get(claim.request.kind).shard_ids(claim.request)
    ]
    rows = sum(found.planned for found in shards)
    if rows > conf().max_rows:
        raise TooManyRows
    storage.spool().create(claim.ref.id)
    queue = kinds.get(claim.request.kind).queue_class(rows)
    held.hear(_write(held, snapshot, shards, queue))
    _events.info("task.planned", shards=len(shards), rows=rows, queue=str(queue))
    return _next(held, shards, rows, queue)


def _refuse_odd_names(shard_ids: list[str]) -> None:
    """Shard ids are names of files and stand beside those of the other steps."""
    for shard_id in shard_ids:
        if not _SHARD_ID.fullmatch(shard_id) or shard_id in set(Step):
            raise StepBroken(f"a kind named a shard {shard_id!r}")


def _snapshot(held: Holding, known: dict[str, str]) -> Snapshot:
    """What an earlier claim fixed, or the present."""
    if "" in known:
        return constants.load_snapshot(known[""])
    snapshot = kinds.get(held.claim.request.kind).take_snapshot(held.claim.request)
    held.hear(store().keep_plan(held.claim, "", constants.dump_snapshot(snapshot)))
    return snapshot


def _shard(held: Holding, known: dict[str, str], snapshot: Snapshot, shard_id: str) -> Shard:
    if shard_id in known:
        return constants.load_shard(shard_id, known[shard_id])
    claim = held.claim
    found = kinds.get(claim.request.kind).plan_shard(claim.request, snapshot, shard_id)
    held.hear(store().keep_plan(claim, shard_id, constants.dump_shard(found)))
    held.check()  # after the work, so that each claim gets on however short its slice
    return found


def _write(held: Holding, snapshot: Snapshot, shards: list[Shard], queue: QueueName) -> str:
    request = held.claim.request
    stem = kinds.get(request.kind).file_stem(request)
    return store().write_plan(
        held.claim,
        shards,
        digest=specify(request).digest(),
        as_of=snapshot.as_of.astimezone(dt.UTC).isoformat(),
        file_name=f"{stem}.{formats.get(request.format).extension}",
        queue=queue,
        spool=storage.spool().id,
    )


def _next(held: Holding, shards: list[Shard], rows: int, queue: QueueName) -> GoOn | None:
    ref = held.claim.ref
    if not shards:
        return GoOn(ref, Step.RENDER, render.render_task)
    if rows <= shard.SMALL_PAGES * conf().page_rows:
        return GoOn(ref, Step.SHARD, shard.fetch_shard)
    work = hints.work(Step.SHARD, queue=queue, spool=storage.spool().id)
    hints.send(work, count=min(len(shards), conf().leases_per_task))
    return None


@dramatiq.actor(actor_name=Step.PLAN, queue_name="plan")
def plan() -> None:
    steps.run_slice(Step.PLAN, plan_task)
