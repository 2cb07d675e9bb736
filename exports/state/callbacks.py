"""Callbacks in Redis: which ends are to be told, what waits for which endpoint, how every attempt ended.

A callback that is due is claimed under a lease. A sender that dies leaves it due again, so it is sent twice rather
than never, with the same bytes and the same id.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from exports.callbacks import Attempt, Callback, CallbackKey, CallbackResult, CallbackState, Outcome
from exports.state import keys
from exports.state.connection import Connection, translated
from exports.state.keys import TaskRef
from exports.state.replies import moment

ATTEMPTS_KEPT = 50
"""Of each callback, the last ones."""


@dataclass(frozen=True, slots=True)
class CallbackClaim:
    """One attempt that has begun. multiplier: of the pauses after a replay, else 0."""

    task_id: str
    key: CallbackKey
    claim_id: str
    number: int
    tries: int
    multiplier: float
    body: str
    traceparent: str


class Callbacks(Connection):
    """Raises, all methods: StateUnavailable."""

    # --- what is to be told ----------------------------------------------------------------

    def end_of(self, task_id: str) -> str | None:
        """When a task ended (ms, as kept), if nobody has been told of it yet."""
        with translated():
            ended_ms = self._redis.zscore(keys.NOTIFY, task_id)
        return None if ended_ms is None else f"{ended_ms:.0f}"

    def settle_end(self, task_id: str, ended_ms: str) -> None:
        self._run("settle_event", _ref(task_id), ended_ms=ended_ms)

    def keep_callback(self, task_id: str, key: CallbackKey, body: str, *, limit: int) -> str:
        """limit: attempts. The word: kept, known, disabled or gone."""
        return self._about("keep_callback", task_id, key, event=key.event_key, body=body, limit=limit)[0]

    # --- telling it ------------------------------------------------------------------------

    def due_callbacks(self, endpoint: str, limit: int) -> list[tuple[str, CallbackKey]]:
        """(task id, callback) that an endpoint waits for now, the one that has waited longest first."""
        now_ms = self.now_ms()
        with translated():
            found = self._redis.zrangebyscore(keys.callbacks_due(endpoint), "-inf", now_ms, start=0, num=limit)
        return [_member(text) for text in cast(list[str], found)]

    def count_due_callbacks(self, endpoints: Sequence[str]) -> int:
        now_ms = self.now_ms()
        with translated(), self._redis.pipeline(transaction=False) as pipe:
            for endpoint in endpoints:
                pipe.zcount(keys.callbacks_due(endpoint), "-inf", now_ms)
            return sum(pipe.execute())

    def claim_callback(self, task_id: str, key: CallbackKey, *, lease_ms: int) -> CallbackClaim | str:
        """Begin an attempt; when there is none to begin, the word: wait, done or failed."""
        claim_id = uuid.uuid4().hex
        reply = self._about(
            "claim_callback",
            task_id,
            key,
            event=key.event_key,
            claim=claim_id,
            lease_ms=lease_ms,
            kept=ATTEMPTS_KEPT,
        )
        if reply[0] != "ok":
            return reply[0]
        number, tries, multiplier, body, traceparent = reply[1:]
        return CallbackClaim(
            task_id=task_id,
            key=key,
            claim_id=claim_id,
            number=int(number),
            tries=int(tries),
            multiplier=float(multiplier or 0),
            body=body,
            traceparent=traceparent,
        )

    def record_callback(self, claim: CallbackClaim, outcome: Outcome, *, pause_ms: int) -> str:
        """Note how an attempt ended. The word: delivered, waiting, failed, lost or gone."""
        return self._about(
            "record_callback",
            claim.task_id,
            claim.key,
            claim=claim.claim_id,
            number=claim.number,
            result=outcome.result,
            status=outcome.status,
            duration=outcome.duration_ms,
            reason=outcome.reason.replace("|", " "),
            body=outcome.body,
            pause_ms=pause_ms,
        )[0]

    # --- looking at it, and telling it again -----------------------------------------------

    def callbacks(self, task_id: str) -> list[Callback]:
        """All callbacks of a task, the first one kept first."""
        with translated(), self._redis.pipeline() as pipe:
            pipe.hgetall(keys.of_task("callbacks", task_id))
            pipe.hgetall(keys.of_task("attempts", task_id))
            kept, attempts = cast(list[dict[str, str]], pipe.execute())
        found = [_callback(name, kept, attempts) for name in kept if "|" not in name]
        return sorted(found, key=lambda callback: (callback.kept_at, str(callback.key)))

    def replay_callback(self, ref: TaskRef, key: CallbackKey, *, limit: int, multiplier: float, by: str) -> bool:
        """Send it anew. limit: attempts. by: who asked, and why; for the task's history. False: no such callback."""
        reply = self._run(
            "replay_callback",
            ref,
            endpoint=key.endpoint,
            callback=key,
            call=uuid.uuid4().hex,
            limit=limit,
            multiplier=f"{multiplier:g}",
            by=by,
        )
        return reply[0] == "ok"

    def failed_callbacks(self, since_ms: int) -> list[tuple[str, CallbackKey]]:
        """(task id, callback) that have failed for good since then, the first one first."""
        with translated():
            found = self._redis.zrangebyscore(keys.CALLBACKS_FAILED, since_ms, "+inf")
        return [_member(text) for text in cast(list[str], found)]

    def _about(self, name: str, task_id: str, key: CallbackKey, **values: object) -> list[str]:
        return self._run(name, _ref(task_id), endpoint=key.endpoint, callback=key, **values)


def _ref(task_id: str) -> TaskRef:
    """Enough to name what belongs to the task's callbacks."""
    return TaskRef(task_id, "", "")


def _member(text: str) -> tuple[str, CallbackKey]:
    task_id, _, name = text.partition("|")
    return task_id, CallbackKey.parse(name)


def _callback(name: str, kept: Mapping[str, str], attempts: Mapping[str, str]) -> Callback:
    """The record as `lua/shared/callbacks.lua` has it, with its attempts."""
    key = CallbackKey.parse(name)
    state, made, _, _, _, replays, kept_ms, due_ms, _ = kept[name].split("|")
    numbers = range(max(1, int(made) - ATTEMPTS_KEPT + 1), int(made) + 1)
    return Callback(
        key=key,
        state=CallbackState(state),
        attempts=int(made),
        replays=int(replays),
        kept_at=moment(kept_ms),
        next_at=moment(due_ms) if state == CallbackState.WAITING else None,
        body=kept[f"body|{key.event_key}"],
        log=tuple(
            _attempt(number, attempts[f"{name}|{number}"]) for number in numbers if f"{name}|{number}" in attempts
        ),
    )


def _attempt(number: int, text: str) -> Attempt:
    sent, responded, status, duration, result, reason, body = text.split("|", 6)
    return Attempt(
        number=number,
        sent_at=moment(sent),
        response_at=moment(responded) if responded else None,
        result=CallbackResult(result) if result else None,
        status=int(status or 0),
        duration_ms=int(duration or 0),
        reason=reason,
        body=body,
    )
