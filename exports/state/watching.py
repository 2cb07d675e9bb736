"""What operators watch: tasks by what they have in common, what all of them do now, and what they did lately."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from exports.contracts import State, Step
from exports.state import keys, replies
from exports.state.connection import Connection, translated
from exports.state.keys import NO_TASK
from exports.state.replies import WorkerSign
from exports.views import StepView

_SCAN = 2000
"""Tasks that one call looks at: a few milliseconds of the server's time."""
HISTORY_MINUTES = 240


@dataclass(frozen=True, slots=True)
class Place:
    """Where a list of tasks in one state goes on: behind this task. score: when it entered the state, as Redis has it."""

    score: str
    task_id: str


@dataclass(frozen=True, slots=True)
class Match:
    """What tasks have in common; an empty value matches all.

    text: a part of taskId, requestId or traceId. oldest_ms, newest_ms: when they entered their state.
    quiet_ms: they have made no progress for this long.
    """

    owner: str = ""
    format: str = ""
    code: str = ""
    text: str = ""
    quiet_ms: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Signs:
    """The service at one moment. Times are ms of the server's clock.

    states: tasks. workers: those alive. minutes: minute since 1970 → what → count.
    spool: bytes of its files and bytes free, unless nobody has measured it lately.
    """

    now_ms: int
    states: Mapping[State, int]
    oldest_queued_ms: int | None
    workers: Mapping[str, WorkerSign]
    minutes: Mapping[int, Mapping[str, int]]
    spool: tuple[int, int] | None


class Watching(Connection):
    """Changes nothing, but for `forget_minutes`. Raises, all methods: StateUnavailable."""

    def find(self, state: State, match: Match, *, limit: int, behind: Place | None = None) -> list[Place]:
        """Tasks in a state, the last one to enter it first; fewer than `limit` only at the end."""
        found: list[Place] = []
        at = behind
        while True:
            reply = self._run("find_tasks", NO_TASK, **_asked(state, match, limit - len(found), at))
            found += [Place(score, task_id) for score, task_id in zip(reply[3::2], reply[4::2], strict=True)]
            if len(found) == limit or not reply[2]:
                return found
            at = Place(reply[1], reply[2])

    def signs(self) -> Signs:
        """Everything that tells how the service does, in one round trip."""
        with translated(), self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.zrange(keys.index(State.QUEUED), 0, 0, withscores=True)
            pipe.hgetall(keys.WORKERS)
            pipe.hgetall(keys.HISTORY)
            pipe.get(keys.SPOOL)
            for state in State:
                pipe.zcard(keys.index(state))
            (seconds, micros), queued, workers, history, spool, *counts = pipe.execute()
        now_ms = replies.clock_ms(seconds, micros)
        return Signs(
            now_ms=now_ms,
            states=dict(zip(State, counts, strict=True)),
            oldest_queued_ms=int(queued[0][1]) if queued else None,
            workers=replies.alive_workers(workers, now_ms),
            minutes=_minutes(history),
            spool=_spool(spool) if spool else None,
        )

    def whole_steps(self, task_id: str) -> list[StepView]:
        """Plan, render and upload of a task, where one is held or waits."""
        with translated(), self._redis.pipeline(transaction=False) as pipe:
            pipe.hmget(keys.of_task("running", task_id), _WHOLE)
            for step in _WHOLE:
                pipe.zscore(keys.of_task("pending", task_id), step)
            held, *due = pipe.execute()
        return [
            StepView(step, replies.lease(step, lease).worker if lease else "", replies.moment(at) if at else None)
            for step, lease, at in zip(_WHOLE, held, due, strict=True)
            if lease or at is not None
        ]

    def planned_as(self, task_id: str) -> str:
        """Digest of the specification that a task was planned with; empty before that."""
        with translated():
            return cast(str | None, self._redis.hget(keys.of_task("task", task_id), "digest")) or ""

    def forget_minutes(self, now_ms: int) -> None:
        """Drop the minutes that are too old to be shown."""
        first = now_ms // 60_000 - HISTORY_MINUTES
        with translated():
            names = cast(list[str], self._redis.hkeys(keys.HISTORY))
            old = [name for name in names if int(name.partition(":")[0]) < first]
            if old:
                self._redis.hdel(keys.HISTORY, *old)


_WHOLE = (Step.PLAN, Step.RENDER, Step.UPLOAD)


def _asked(state: State, match: Match, limit: int, behind: Place | None) -> dict[str, object]:
    newest = "+inf" if match.newest_ms is None else str(match.newest_ms)
    return {
        "state": state,
        "prefix": keys.of_task("task", ""),
        "newest": behind.score if behind else newest,
        "before": behind.task_id if behind else "",
        "oldest": "-inf" if match.oldest_ms is None else match.oldest_ms,
        "scan": _SCAN,
        "limit": limit,
        "owner": match.owner,
        "format": match.format,
        "code": match.code,
        "quiet_ms": match.quiet_ms,
        "text": match.text,
    }


def _spool(text: str) -> tuple[int, int]:
    used, _, free = text.partition("|")
    return int(used), int(free)


def _minutes(history: Mapping[str, str]) -> dict[int, dict[str, int]]:
    found: dict[int, dict[str, int]] = {}
    for name, count in history.items():
        minute, _, what = name.partition(":")
        found.setdefault(int(minute), {})[what] = int(count)
    return found
