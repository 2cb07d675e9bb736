"""What a task looks like from outside: as it was read, in one round trip, with what is told of its shards and its past.

No framework is imported here, as in `exports.contracts`.
"""

import datetime as dt
from dataclasses import dataclass

from exports.contracts import ExportRequest, Phase, QueueName, Recount, State, Step, Warning


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task failed, and where. page counts from 1; cursor: the last committed key."""

    code: str
    phase: Phase | None
    shard_id: str = ""
    page: int = 0
    cursor: str = ""
    attempts: int = 0
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Deletion:
    """What is left of a task that was deleted before its time."""

    at: dt.datetime
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as read in one round trip. Numbers are rows; times are UTC. foreign: its last claim was by another specification. drift: None until all shards are done.

    queue, spool: None and "" before the plan. stranded: its spool had no worker when the sweep looked.
    run_ms: how long somebody has worked on this epoch. queued_before: queued tasks that came first; None unless queued.
    rows_per_second: over the last 10 to 20 seconds; None where nothing was committed in them. stalled_at: when a silence was noted; None while it moves.
    """

    task_id: str
    request: ExportRequest
    state: State
    phase: Phase | None
    epoch: int
    processed: int
    total: int | None
    created_at: dt.datetime
    started_at: dt.datetime | None
    finished_at: dt.datetime | None
    failure: Failure | None
    cancel_requested_at: dt.datetime | None
    shards_total: int
    shards_done: int
    shards_running: int
    drift: Recount | None
    as_of: dt.datetime | None
    warnings: tuple[Warning, ...]
    file_name: str
    file_size: int | None
    sha256: str
    object_key: str
    expires_at: dt.datetime | None
    queue: QueueName | None
    spool: str
    stranded: bool
    traceparent: str
    foreign: bool
    run_ms: int
    queued_before: int | None
    progress_at: dt.datetime | None
    stalled_at: dt.datetime | None
    rows_per_second: float | None
    deleted: Deletion | None
    read_at: dt.datetime

    @property
    def trace_id(self) -> str:
        return self.traceparent.split("-")[1]


@dataclass(frozen=True, slots=True)
class ShardView:
    """One shard of a task, for operators. state: pending, running or done; next_try_at only while pending."""

    shard_id: str
    state: str
    cursor: str
    rows_written: int
    planned: int
    pages: int
    page_rows: int
    attempts: int
    recoveries: int
    drift: Recount | None
    next_try_at: dt.datetime | None
    holder: str


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who did what to a task. address: of the caller; empty for a command."""

    at: dt.datetime
    action: str
    result: str
    address: str
    by: str


@dataclass(frozen=True, slots=True)
class StepView:
    """Plan, render or upload of a task while a worker holds it or it waits, for operators."""

    step: Step
    holder: str
    next_try_at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a task's bounded history."""

    at: dt.datetime
    name: str
    detail: str


def to_second(time: dt.datetime | None) -> str | None:
    """ISO 8601, UTC, whole seconds, `Z`."""
    return f"{time.astimezone(dt.UTC):%Y-%m-%dT%H:%M:%SZ}" if time else None
