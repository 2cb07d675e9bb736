"""What others are told of a task: events, one callback an event and endpoint, one record an attempt. Plain values.

A callback is kept at least until it is delivered or given up, and shown for as long as its task.
"""

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum

REPLAY_ATTEMPTS, REPLAY_MULTIPLIER = 3, 2.0
"""Of a replay where nobody says otherwise: attempts, and each pause against the one before it."""


class CallbackEvent(StrEnum):
    """What can happen to a task that somebody outside wants to know."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STALLED = "stalled"

    @property
    def type(self) -> str:
        """Its public name."""
        return f"export.{self}"


class CallbackResult(StrEnum):
    """How an attempt ended. Everything but `delivered` is a failure; `gone` (410) is not tried again."""

    DELIVERED = "delivered"
    REFUSED = "refused"
    GONE = "gone"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    BLOCKED = "blocked"
    BROKEN = "broken"


class CallbackState(StrEnum):
    WAITING = "waiting"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CallbackKey:
    """Names a callback within its task. Its text form is `<epoch>-<event>-<endpoint>`."""

    epoch: int
    event: CallbackEvent
    endpoint: str

    @classmethod
    def parse(cls, text: str) -> "CallbackKey":
        epoch, event, endpoint = text.split("-", 2)
        return cls(int(epoch), CallbackEvent(event), endpoint)

    def __str__(self) -> str:
        return f"{self.event_key}-{self.endpoint}"

    @property
    def event_key(self) -> str:
        """What the callbacks of one event have in common, their body first of all."""
        return f"{self.epoch}-{self.event}"

    def message_id(self, task_id: str) -> str:
        """`webhook-id`: the same at every attempt and replay. Without a dot, which separates what is signed."""
        return f"{task_id}-{self}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request. status: 0 without an answer. body: the first characters of the answer."""

    result: CallbackResult
    status: int = 0
    reason: str = ""
    body: str = ""
    retry_after_ms: int = 0
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request as the audit shows it. response_at and result: None while it is under way, or if its sender died."""

    number: int
    sent_at: dt.datetime
    response_at: dt.datetime | None
    result: CallbackResult | None
    status: int
    duration_ms: int
    reason: str
    body: str


@dataclass(frozen=True, slots=True)
class Callback:
    """One event for one endpoint. body: the bytes of every attempt, as text.

    next_at: only while waiting. replays: how often it was sent anew. log: the last attempts, the oldest first.
    """

    key: CallbackKey
    state: CallbackState
    attempts: int
    replays: int
    kept_at: dt.datetime
    next_at: dt.datetime | None
    body: str
    log: tuple[Attempt, ...]
