"""Reads of the state: a task as people see it, lists, counters."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from exports.callbacks import CallbackResult
from exports.contracts import (
    CommittedSegment,
    Drift,
    ExportRequest,
    Format,
    OpenUpload,
    QueueName,
    State,
    Step,
    StoredPart,
)
from exports.state import keys, replies
from exports.state.connection import Connection, translated
from exports.state.keys import NO_TASK, TaskRef
from exports.state.replies import Proposal
from exports.telemetry.metrics import DURATION_BUCKETS_S, PAGE_BUCKETS_S
from exports.views import AuditEntry, Event, ShardView, TaskView

_SCAN = 1000
"""Runnable tasks that one proposal looks at: a millisecond of the server's time."""
EQUAL: Mapping[QueueName, int] = dict.fromkeys(QueueName, 0)
"""All queues at the same rank."""


@dataclass(frozen=True, slots=True)
class Durations:
    """buckets: (upper bound in seconds, observations up to it), cumulative, without infinity."""

    buckets: tuple[tuple[float, int], ...]
    count: int
    sum_seconds: float


@dataclass(frozen=True, slots=True)
class Counters:
    """Exact over any kill: counted by the scripts that make the changes. retries: error code → how often."""

    states: Mapping[State, int]
    rows: int
    stalled: int
    durations: Mapping[Format, Durations]
    pages: Durations
    recoveries: Mapping[Step, int]
    retries: Mapping[str, int]
    drifted: Mapping[Drift, int]
    rows_drifted: int
    request_hits: int
    callbacks: Mapping[CallbackResult, int]
    callback_replays: int
    restarts: Mapping[str, int]


class Reader(Connection):
    """Changes nothing. Raises, all methods: StateUnavailable."""

    def next_tasks(
        self, step: Step, limit: int, *, ranks: Mapping[QueueName, int] = EQUAL, spool: str = ""
    ) -> list[Proposal]:
        """Tasks with a step of this class, in the order in which to ask for it.

        ranks: of the queues that are served, the lowest first. spool: only what can be done there; "" for all.
        """
        reply = self._run(
            "next_tasks",
            NO_TASK,
            **{"class": step, **{str(queue): ranks.get(queue, "") for queue in QueueName}},
            prefix=keys.of_task("task", ""),
            spool=spool,
            scan=_SCAN,
            limit=limit,
        )
        return [replies.proposal(*three) for three in zip(reply[1::3], reply[2::3], reply[3::3], strict=True)]

    def queue_lengths(self) -> dict[str, int]:
        """Tasks that wait or are worked on, by the kind of their next step: plan, shards of each queue, finish."""
        shards = Counter(found.queue for found in self.next_tasks(Step.SHARD, _SCAN))
        with translated(), self._redis.pipeline(transaction=False) as pipe:
            for step in (Step.PLAN, Step.RENDER, Step.UPLOAD):
                pipe.zcard(keys.runnable(step))
            plan, render, upload = pipe.execute()
        return {"plan": plan, **{str(queue): shards[queue] for queue in QueueName}, "finish": render + upload}

    def ref(self, task_id: str) -> TaskRef | None:
        """What names a task's keys; None for an unknown task."""
        with translated():
            owner, request_id = cast(
                list[str | None], self._redis.hmget(keys.of_task("task", task_id), ["owner", "request_id"])
            )
        return TaskRef(task_id, owner, request_id) if owner is not None and request_id is not None else None

    def request(self, task_id: str) -> ExportRequest | None:
        """What a task was asked to do; it never changes."""
        with translated():
            fields = cast(dict[str, str], self._redis.hgetall(keys.of_task("task", task_id)))
        return replies.export_request(fields) if fields else None

    def read(self, task_id: str) -> TaskView | None:
        """A task at one moment, in one round trip; None for an unknown task."""
        reply = self._run("read_task", TaskRef(task_id, "", ""))
        return replies.task_view(task_id, reply) if reply[0] == "ok" else None

    def read_all(self, task_ids: Sequence[str]) -> list[TaskView]:
        """Those tasks that are there, in one round trip."""
        found = self._run_all("read_task", [TaskRef(task_id, "", "") for task_id in task_ids])
        return [
            replies.task_view(task_id, reply)
            for task_id, reply in zip(task_ids, found, strict=True)
            if reply[0] == "ok"
        ]

    def shards(self, task_id: str) -> list[ShardView]:
        with translated(), self._redis.pipeline() as pipe:
            pipe.hgetall(keys.of_task("shards", task_id))
            pipe.zrange(keys.of_task("pending", task_id), 0, -1, withscores=True)
            pipe.hgetall(keys.of_task("running", task_id))
            pipe.smembers(keys.of_task("done", task_id))
            shards, pending, running, done = pipe.execute()
        return replies.shard_views(shards, dict(pending), running, frozenset(done))

    def plan(self, task_id: str) -> dict[str, str]:
        """Shard id → constants, "" → snapshot, as far as planning has come."""
        with translated():
            return cast(dict[str, str], self._redis.hgetall(keys.of_task("plan", task_id)))

    def snapshot(self, task_id: str) -> str:
        """The constants of a plan that all its shards share. Raises: KeyError before they are fixed."""
        with translated():
            found = cast(str | None, self._redis.hget(keys.of_task("plan", task_id), ""))
        if found is None:
            raise KeyError(task_id)
        return found

    def segments(self, task_id: str) -> list[CommittedSegment]:
        """The committed segments, in the order of their fences."""
        with translated():
            found = cast(dict[str, str], self._redis.hgetall(keys.of_task("segments", task_id)))
        parsed = []
        for name, text in found.items():
            fence, length, crc, pages, rows, shard_id = text.split("|", 5)
            parsed.append(CommittedSegment(name, shard_id, int(fence), int(pages), int(rows), int(length), int(crc)))
        return sorted(parsed, key=lambda segment: segment.fence)

    def upload(self, task_id: str) -> tuple[OpenUpload, dict[int, StoredPart]] | None:
        """The upload in parts that was begun last, and its parts by their numbers."""
        with translated():
            found = cast(dict[str, str], self._redis.hgetall(keys.of_task("parts", task_id)))
        return replies.upload_parts(found)

    def events(self, task_id: str) -> list[Event]:
        with translated():
            lines = cast(list[str], self._redis.lrange(keys.of_task("events", task_id), 0, -1))
        return [replies.event(line) for line in lines]

    def audit(self, task_id: str) -> list[AuditEntry]:
        """Who did what to a task, oldest first."""
        with translated():
            lines = cast(list[str], self._redis.lrange(keys.of_task("audit", task_id), 0, -1))
        return [replies.audit_entry(line) for line in lines]

    def owned(self, owner: str) -> list[str]:
        """Task ids of an owner, newest first."""
        with translated():
            return cast(list[str], self._redis.zrevrange(keys.owner_index(keys.owner_digest(owner)), 0, -1))

    def changed(self, owner: str, *, since_ms: int, limit: int) -> tuple[int, list[str]]:
        """Ids of an owner's tasks that changed since a moment (itself included), and from when (ms) to ask next.

        At most `limit`, those that changed first.
        """
        with translated(), self._redis.pipeline() as pipe:
            pipe.time()
            key = keys.owner_changed(keys.owner_digest(owner))
            pipe.zrangebyscore(key, since_ms, "+inf", start=0, num=limit, withscores=True)
            (seconds, micros), found = pipe.execute()
        next_ms = int(found[-1][1]) if len(found) == limit else replies.clock_ms(seconds, micros)
        return next_ms, [task_id for task_id, _ in found]

    def states(self, task_ids: Sequence[str]) -> dict[str, State]:
        """The states of those tasks that are there."""
        with translated(), self._redis.pipeline(transaction=False) as pipe:
            for task_id in task_ids:
                pipe.hget(keys.of_task("task", task_id), "state")
            found = pipe.execute()
        return {task_id: State(state) for task_id, state in zip(task_ids, found, strict=True) if state}

    def in_state(self, state: State) -> list[str]:
        """Task ids in a state, the last one to enter it first."""
        with translated():
            return cast(list[str], self._redis.zrevrange(keys.index(state), 0, -1))

    def counters(self) -> Counters:
        with translated():
            raw = cast(dict[str, str], self._redis.hgetall(keys.METRICS))
        return Counters(
            states={state: int(raw.get(f"state:{state}", 0)) for state in State},
            rows=int(raw.get("rows", 0)),
            stalled=int(raw.get("stalled", 0)),
            durations={name: _durations(raw, f"duration:{name}", DURATION_BUCKETS_S) for name in Format},
            pages=_durations(raw, "page", PAGE_BUCKETS_S),
            recoveries={step: int(raw.get(f"recoveries:{step}", 0)) for step in Step},
            retries={
                name.removeprefix("retries:"): int(count) for name, count in raw.items() if name.startswith("retries:")
            },
            drifted={drift: int(raw.get(f"drifted:{drift}", 0)) for drift in (Drift.CHANGED, Drift.UNKNOWN)},
            rows_drifted=int(raw.get("rows_drifted", 0)),
            request_hits=int(raw.get("request_hits", 0)),
            callbacks={result: int(raw.get(f"callback:{result}", 0)) for result in CallbackResult},
            callback_replays=int(raw.get("callback_replays", 0)),
            restarts={reason: int(raw.get(f"restarts:{reason}", 0)) for reason in replies.RESTARTS},
        )


def _durations(raw: Mapping[str, str], name: str, bounds: Sequence[float]) -> Durations:
    buckets, count = [], 0
    for bound in bounds:
        count += int(raw.get(f"{name}:{int(bound * 1000)}", 0))
        buckets.append((bound, count))
    count += int(raw.get(f"{name}:inf", 0))
    return Durations(tuple(buckets), count, int(raw.get(f"{name}:ms", 0)) / 1000)
