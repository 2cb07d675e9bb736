"""Tasks, shards and events as the templates show them: texts in one language, times in the business zone."""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from exports import service
from exports.callbacks import Callback
from exports.conf import conf
from exports.contracts import STEP_OF, State, Step
from exports.messages import CAUSES, PHASES, PLANNING, failure_sentence
from exports.operations.overview import Minute
from exports.ops.language import language_in_use
from exports.ops.page import say
from exports.ops.texts import EVENTS, REMEDIES, STATES, STEPS
from exports.pipeline.manifest import ShardEntry
from exports.views import AuditEntry, Event, Failure, ShardView, StepView, TaskView


def moment(time: dt.datetime | None) -> str:
    """In the business zone, to the second; empty for None."""
    return f"{time.astimezone(ZoneInfo(conf().business_zone)):%Y-%m-%d %H:%M:%S}" if time else ""


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task in a list. total: None until it is planned. mark: names its colour."""

    task_id: str
    state: str
    mark: str
    phase: str
    owner: str
    request_id: str
    format: str
    window: str
    processed: int
    total: int | None
    rows: str
    error: str
    since: str


def task_row(view: TaskView) -> TaskRow:
    language, request = language_in_use(), view.request
    stalled = service.is_stalled(view)
    done = f"{view.processed:,}"
    return TaskRow(
        task_id=view.task_id,
        state=say("stalled") if stalled else STATES[view.state].say(language),
        mark="stalled" if stalled else view.state,
        phase=PHASES[view.phase].say(language) if view.phase and view.state is State.RUNNING else "",
        owner=request.owner,
        request_id=request.request_id,
        format=request.format.upper(),
        window=f"{request.first_day} … {request.last_day}",
        processed=view.processed,
        total=view.total,
        rows=say("rows_of", done=done, total=f"{view.total:,}")
        if view.total is not None
        else say("rows_so_far", done=done),
        error=failure_sentence(view.failure, language) if view.failure else "",
        since=moment(view.finished_at or view.started_at or view.created_at),
    )


@dataclass(frozen=True, slots=True)
class PhaseRow:
    """One of plan, fetch, render, upload. mark: done, running, stopped or waiting."""

    name: str
    mark: str
    text: str
    detail: str


def phase_rows(view: TaskView, steps: Iterable[StepView]) -> list[PhaseRow]:
    known = {step.step: step for step in steps}
    current = STEP_OF[view.phase]
    reached = list(Step).index(current)
    rows = []
    for at, step in enumerate(Step):
        if at < reached or view.state is State.SUCCEEDED:
            mark, text = "done", say("done")
        elif at > reached:
            mark, text = "waiting", say("not_yet")
        elif view.state.ended:
            mark, text = "stopped", say("stopped_here")
        else:
            mark, text = "running", STATES[view.state].say(language_in_use())
        rows.append(
            PhaseRow(STEPS[step].say(language_in_use()), mark, text, _phase_detail(step, view, known.get(step)))
        )
    return rows


def _phase_detail(step: Step, view: TaskView, found: StepView | None) -> str:
    if step is Step.SHARD and view.shards_total:
        return say("shards_done", done=view.shards_done, total=view.shards_total)
    if found is None:
        return ""
    due = found.next_try_at
    return found.holder or (f"{say('next_try')} {moment(due)}" if due and due > view.read_at else "")


@dataclass(frozen=True, slots=True)
class ShardRow:
    shard_id: str
    state: str
    mark: str
    cursor: str
    written: int
    planned: int
    rows: str
    page_rows: str
    attempts: int
    recoveries: int
    drift: str
    next_try: str
    holder: str


def shard_row(shard: ShardView, *, now: dt.datetime) -> ShardRow:
    later = shard.next_try_at is not None and shard.next_try_at > now
    return ShardRow(
        shard_id=shard.shard_id,
        state=STATES[State.RUNNING].say(language_in_use()) if shard.state == "running" else say(shard.state),
        mark=shard.state,
        cursor=shard.cursor,
        written=shard.rows_written,
        planned=shard.planned,
        rows=f"{shard.rows_written:,} / {shard.planned:,}",
        page_rows=f"{shard.page_rows:,}",
        attempts=shard.attempts,
        recoveries=shard.recoveries,
        drift=shard.drift.told() if shard.drift else "",
        next_try=moment(shard.next_try_at) if later else "",
        holder=shard.holder,
    )


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """A shard as the manifest tells it, but for its kind's bounds. keys: the first and the last; empty where not told."""

    label: str
    keys: str
    planned: str
    rows: str
    drift: str
    bytes: str
    sha256: str


def manifest_row(entry: ShardEntry) -> ManifestRow:
    return ManifestRow(
        label=entry.shard.label,
        keys=" … ".join(entry.keys) if entry.keys else "",
        planned=f"{entry.shard.planned:,}",
        rows=f"{entry.rows:,}",
        drift=entry.drift.told(),
        bytes=f"{entry.raw_bytes:,}",
        sha256=entry.sha256,
    )


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Where and why a task failed, and what to do. keys: of the page that could not be read."""

    code: str
    cause: str
    phase: str
    shard_id: str
    page: int
    keys: str
    attempts: int
    remedy: str


def failure_row(failure: Failure, shards: Sequence[ShardView]) -> FailureRow:
    language = language_in_use()
    remedy, cause = REMEDIES.get(failure.code), CAUSES.get(failure.code)
    page_rows = next((shard.page_rows for shard in shards if shard.shard_id == failure.shard_id), 0)
    if failure.page and page_rows:
        known = "after_key" if failure.cursor else "from_first_key"
        keys = say(known, cursor=failure.cursor, rows=f"{page_rows:,}")
    else:
        keys = ""
    return FailureRow(
        code=failure.code,
        cause=cause.say(language) if cause else "",
        phase=(PHASES[failure.phase] if failure.phase else PLANNING).say(language),
        shard_id=failure.shard_id,
        page=failure.page,
        keys=keys,
        attempts=failure.attempts,
        remedy=remedy.say(language) if remedy else "",
    )


@dataclass(frozen=True, slots=True)
class EventRow:
    time: str
    name: str
    detail: str


def event_row(event: Event) -> EventRow:
    name = EVENTS.get(event.name)
    return EventRow(moment(event.at), name.say(language_in_use()) if name else event.name, event.detail)


@dataclass(frozen=True, slots=True)
class AuditRow:
    time: str
    action: str
    by: str
    address: str
    result: str


def audit_row(entry: AuditEntry) -> AuditRow:
    return AuditRow(moment(entry.at), entry.action, entry.by, entry.address, entry.result)


@dataclass(frozen=True, slots=True)
class CallbackRow:
    """What one endpoint is told of one event. answer: how the last attempt ended."""

    name: str
    state: str
    mark: str
    attempts: int
    replays: int
    answer: str
    next_try: str


def callback_row(callback: Callback) -> CallbackRow:
    last = callback.log[-1] if callback.log else None
    return CallbackRow(
        name=str(callback.key),
        state=say(callback.state),
        mark={"delivered": "done", "waiting": "pending"}.get(callback.state, callback.state),
        attempts=callback.attempts,
        replays=callback.replays,
        answer=" ".join(filter(None, (last.result, str(last.status or ""), last.reason))) if last else "",
        next_try=moment(callback.next_at),
    )


@dataclass(frozen=True, slots=True)
class Bar:
    """One minute of the chart, in its own units. failed: tasks that failed in it."""

    x: int
    y: int
    height: int
    failed: int


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars below `width` and `height`. most: rows in the best minute."""

    width: int
    height: int
    bars: list[Bar]
    first: str
    last: str
    most: str
    ended: str


_BAR_WIDTH, _HEIGHT = 4, 120


def chart(minutes: Sequence[Minute]) -> Chart | None:
    """None where nothing was counted yet."""
    if not minutes:
        return None
    most = max(minute.rows for minute in minutes)
    heights = [round(_HEIGHT * minute.rows / most) if most else 0 for minute in minutes]
    counts = {str(state): sum(minute.ended.get(state, 0) for minute in minutes) for state in State if state.ended}
    return Chart(
        width=_BAR_WIDTH * len(minutes),
        height=_HEIGHT,
        bars=[
            Bar(_BAR_WIDTH * at, _HEIGHT - height, height, minute.ended.get(State.FAILED, 0))
            for at, (minute, height) in enumerate(zip(minutes, heights, strict=True))
            if height or State.FAILED in minute.ended
        ],
        first=moment(minutes[0].at)[11:16],
        last=moment(minutes[-1].at)[11:16],
        most=say("chart_most", rows=f"{most:,}"),
        ended=say("chart_ended", **counts),
    )
