"""The one checker of the fault suite: reads file, store, spool, Redis and log, and names every broken invariant.

The numbers are those of the reliability notes: I1 one task, I2 rows, I3 durable prefix, I4 monotone, I5 leases and
fences, I6 states, I7 objects, I11 bounded retries, I12 explanation, I13 expiry, I14 cancel, I15 rerun, I17 counters.
"""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from exports import service, storage
from exports.conf import conf
from exports.contracts import Format, State
from exports.errors import ExportError, SegmentDamaged
from exports.pipeline import manifest
from exports.state import keys
from exports.state.keys import ref_of
from exports.state.store import store
from exports.views import Event, TaskView
from tests import pipeline
from tests.reliability.world import REQUEST, World

_ENDS = {str(state) for state in State if state.ended}
_OPEN = {"queued", "running"}
_AFTER: dict[str, set[str]] = {
    "": {"queued"},
    "queued": {"running", *_ENDS - {"succeeded"}},
    "running": {"queued", *_ENDS},
    "succeeded": set(),
    "failed": {"rerun", "cancelled"},
    "rerun": {"running", *_ENDS - {"succeeded"}},
    "cancelled": set(),
}
"""State events, and what may follow each."""
_SHARED = re.compile(
    r"export:(identity|workers|metrics|spool|shares|latency|history|cleanup|notify|lost|sweep-lock|index:.+|request:[0-9a-f]{64})"
)
_OF_TASK = re.compile(rf"export:({'|'.join(keys._OF_TASK)}):(.+)")
_GONE_AT_THE_END = {"plan", "pending", "segments", "done", "parts", "running"}


@dataclass(frozen=True, slots=True)
class Moment:
    """What stood in Redis right after the fault."""

    processed: int
    epoch: int
    state: State | None
    events: tuple[Event, ...]


def look(world: World, *, keeps_spool: bool) -> tuple[Moment, list[str]]:
    """The moment after a fault, and what is wrong with it already."""
    view = world.view()
    if view is None:
        return Moment(0, 0, None, ()), []
    wrong = list(_live_expiry(world, view))
    if keeps_spool and not view.state.ended:
        wrong += _durable_prefix(view.task_id)
    return Moment(view.processed, view.epoch, view.state, tuple(store().events(view.task_id))), wrong


def check(
    world: World,
    *,
    expected: bytes,
    ends: State,
    before: Moment | None = None,
    rows_again: bool = False,
    may_break: frozenset[str] = frozenset(),
) -> list[str]:
    """What is wrong with a settled world; nothing when all invariants hold.

    expected: bytes of the undisturbed export. rows_again: shards may have been read from their first row again.
    may_break: exceptions that a worker's message may end with.
    """
    view = world.view()
    if view is None:
        return ["I9: there is no task"]
    if view.state is not ends:
        return [f"I9: the task is {view.state} ({view.failure}), not {ends}"]
    events = store().events(view.task_id)
    return [
        *_one_task(world, view),
        *_file(view, expected),
        *_objects(view),
        *_no_leases(world),
        *_fences(world),
        *_one_state(world, view, events),
        *_one_expiry(world, view),
        *_no_orphans(world, view),
        *_counters(view, events, rows_again=rows_again),
        *_log(world, view, events, may_break=may_break),
        *(_later(view, events, before) if before else ()),
    ]


def explain(view: TaskView, *, codes: frozenset[str]) -> list[str]:
    """I11, I12: what a failed task must say about itself. codes: the ones that fit the fault."""
    found = view.failure
    if found is None:
        return ["I12: no failure"]
    wrong = []
    if found.code not in codes:
        wrong.append(f"I12: the code is {found.code}, not one of {sorted(codes)}")
    if found.phase is not None and str(found.phase) == "fetch" and not (found.shard_id and found.page):
        wrong.append(f"I12: no place: {found}")
    if found.attempts > len(conf().retry_delays_ms) + 1:
        wrong.append(f"I11: {found.attempts} attempts")
    return wrong


# --- right after the fault -----------------------------------------------------------------------


def _live_expiry(world: World, view: TaskView) -> Iterator[str]:
    if view.state.ended:
        return
    for name, key in _keys_of(world, view).items():
        if world.state.pexpiretime(key) > 0:
            yield f"I13: {name} of a live task expires"


def _durable_prefix(task_id: str) -> Iterator[str]:
    for segment in store().segments(task_id):
        try:
            storage.spool().pages(task_id, segment)
        except SegmentDamaged:
            yield f"I3: {segment.name} does not hold what was committed"


# --- when all is over ----------------------------------------------------------------------------


def _one_task(world: World, view: TaskView) -> Iterator[str]:
    tasks = [key.decode() for key in world.state.keys("export:task:*")]
    if tasks != [keys.of_task("task", view.task_id)]:
        yield f"I1: {len(tasks)} tasks"
    answer = world.state.get(keys.names(ref_of(view.task_id, view.request))["request"]) or b""
    if answer.decode().partition("|")[0] != view.task_id or view.request.request_id != REQUEST:
        yield "I1: the requestId does not answer the task"


def _file(view: TaskView, expected: bytes) -> Iterator[str]:
    if view.state is not State.SUCCEEDED:
        try:
            service.open_file(view.task_id, principal=pipeline.ANN)
            yield "I7: a file without success"
        except ExportError:
            return
        return
    try:
        data = pipeline.read_file(view.task_id)
    except ExportError as error:
        yield f"I7: no file: {error.code}"
        return
    if not same(data, expected, view.request.format):
        yield f"I2: the file differs ({len(data)} bytes, not {len(expected)})"
    rows = sum(shard.rows_written for shard in store().shards(view.task_id))
    if not rows == view.processed == view.total:
        yield f"I2: {rows} rows, processed {view.processed}, total {view.total}"


def same(data: bytes, expected: bytes, output: Format) -> bool:
    """Identical as the design means it: bytes, or every member of a workbook but its properties."""
    if output is Format.CSV:
        return data == expected
    return _members(data) == _members(expected)


def _members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        return {name: book.read(name) for name in book.namelist() if name != "docProps/core.xml"}


def _objects(view: TaskView) -> Iterator[str]:
    root = conf().store_dir
    # What a killed writer of the identity left goes with the next one; it is of no task.
    found = sorted(
        str(path.relative_to(root))
        for path in root.rglob("*")
        if path.is_file() and not path.name.removeprefix(".").startswith("identity")
    )
    wanted = list(manifest.objects(view.object_key)) if view.state is State.SUCCEEDED else []
    if found != wanted:
        yield f"I7: the store holds {found}, not {wanted}"
    left = sorted(path.name for path in (conf().spool_dir / "tasks").iterdir())
    if left:
        yield f"I7: the spool holds {left}"


def _no_leases(world: World) -> Iterator[str]:
    if leases := world.state.keys("export:running:*") + world.state.zrange("export:leases", 0, -1):
        yield f"I5: leases are left: {leases}"
    if proposed := [key for key in world.state.keys("export:runnable:*") if world.state.zcard(key)]:
        yield f"I5: an ended task is proposed: {proposed}"


def _fences(world: World) -> Iterator[str]:
    """Each claim of a shard has a fence of its own, and fences rise."""
    started = [line for line in world.lines() if line["event"] == "shard.started"]
    fences = [(line["shardId"], line["fence"]) for line in started]
    if doubled := [claim for claim, count in Counter(fences).items() if count > 1]:
        yield f"I5: fences were given twice: {doubled}"


def _one_state(world: World, view: TaskView, events: Sequence[Event]) -> Iterator[str]:
    listed = [str(state) for state in State if world.state.zscore(keys.index(state), view.task_id) is not None]
    if listed != [str(view.state)]:
        yield f"I6: the task is {view.state} and listed under {listed}"
    if view.finished_at is None or (view.started_at and view.started_at > view.finished_at):
        yield f"I6: started {view.started_at}, finished {view.finished_at}"
    if [event.at for event in events] != sorted(event.at for event in events):
        yield "I6: the history is not in order"
    yield from _transitions(view, ["", *_state_events(events)])


def _transitions(view: TaskView, names: Sequence[str]) -> Iterator[str]:
    for first, second in pairwise(names):
        if second not in _AFTER[first]:
            yield f"I6: {second} after {first or 'nothing'}: {names}"
    if names[-1] != view.state:
        yield f"I6: the history ends with {names[-1]}, the task is {view.state}"
    if view.epoch != 1 + names.count("rerun"):
        yield f"I15: epoch {view.epoch} after {names.count('rerun')} reruns"


def _state_events(events: Sequence[Event]) -> list[str]:
    return [event.name for event in events if event.name in _AFTER]


def _one_expiry(world: World, view: TaskView) -> Iterator[str]:
    if view.expires_at is None:
        yield "I13: an ended task without expiry"
        return
    wanted = round(view.expires_at.timestamp() * 1000)
    for name, key in _keys_of(world, view).items():
        if (found := world.state.pexpiretime(key)) != wanted:
            yield f"I13: {name} expires at {found}, not at {wanted}"
        if name in _GONE_AT_THE_END and view.state is not State.FAILED:
            yield f"I13: {name} of an ended task is left"


def _keys_of(world: World, view: TaskView) -> dict[str, str]:
    """Name → key, those of the task that exist."""
    own = {key.split(":")[1]: key for key in keys.own(ref_of(view.task_id, view.request))}
    return {name: key for name, key in own.items() if world.state.exists(key)}


def _no_orphans(world: World, view: TaskView) -> Iterator[str]:
    for key in sorted(key.decode() for key in world.state.keys("*")):
        of_task = _OF_TASK.fullmatch(key)
        if not _SHARED.fullmatch(key) and not (of_task and of_task[2] == view.task_id):
            yield f"I13: {key} is left in Redis"
    if waiting := world.state.zrange("export:notify", 0, -1):
        yield f"I17: nobody was told the end of {waiting}"


def _counters(view: TaskView, events: Sequence[Event], *, rows_again: bool) -> Iterator[str]:
    counted = store().counters()
    names = Counter(_state_events(events))
    names["queued"] += names.pop("rerun", 0)
    told = {str(state): number for state, number in counted.states.items() if number}
    if told != dict(names):
        yield f"I17: counters {told}, history {dict(names)}"
    written = sum(shard.rows_written for shard in store().shards(view.task_id))
    if counted.rows < written or (counted.rows != written and not rows_again):
        yield f"I17: {counted.rows} rows were counted, {written} committed"
    pages = sum(shard.pages for shard in store().shards(view.task_id))
    if counted.pages.count < pages or (counted.pages.count != pages and not rows_again):
        yield f"I17: {counted.pages.count} pages were timed, {pages} committed"
    recovered = sum(event.name == "recovered" for event in events)
    if (recoveries := sum(counted.recoveries.values())) != recovered:
        yield f"I17: {recoveries} recoveries were counted, the history has {recovered}"
    epochs = _started_and_ended(events)
    if (observed := counted.durations[view.request.format].count) != epochs:
        yield f"I17: {observed} durations of {epochs} epochs"


def _started_and_ended(events: Sequence[Event]) -> int:
    """Epochs that started and ended: each is observed once, at its first end."""
    count, started = 0, False
    for name in _state_events(events):
        if name in _ENDS and started:
            count, started = count + 1, False
        started = name == "running" or (started and name != "rerun")
    return count


def _log(world: World, view: TaskView, events: Sequence[Event], *, may_break: frozenset[str]) -> Iterator[str]:
    """Every end is told (twice only when a kill fell between the line and its mark), with one trace."""
    lines = world.lines()
    told = Counter(line["state"] for line in lines if line["event"] == "task.ended")
    ends = Counter(event.name for event in events if event.name in _ENDS)
    for state, number in ends.items():
        if not number <= told[state] <= number + 1:
            yield f"I17: {number} × {state}, told {told[state]} times"
    if strange := set(told) - set(ends):
        yield f"I17: told {strange}, never happened"
    traces = {line["traceId"] for line in lines if line.get("taskId") == view.task_id}
    if traces - {view.trace_id}:
        yield f"I17: traces {traces}"
    broken = {line["kind"] for line in lines if line["event"] == "worker.broken"}
    if broken - may_break:
        yield f"I10: {broken} came out of a worker: {_first_broken(lines)}"


def _first_broken(lines: Sequence[dict[str, object]]) -> object:
    return next(line.get("exception") for line in lines if line["event"] == "worker.broken")


def _later(view: TaskView, events: Sequence[Event], before: Moment) -> Iterator[str]:
    """What happened after the fault goes on from what stood there."""
    if tuple(events[: len(before.events)]) != before.events:
        yield "I6: the history was rewritten"
    if before.epoch == view.epoch and view.processed < before.processed:
        yield f"I4: processed fell from {before.processed} to {view.processed}"
    if before.state is State.SUCCEEDED and len(events) != len(before.events):
        yield "I6: something happened after success"
