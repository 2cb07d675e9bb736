"""The names of all Redis keys. One primary, no cluster: the keys of one script need not share a slot."""

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from exports.contracts import ExportRequest, State, Step

PREFIX = "export"

_OF_TASK = (
    "task",
    "plan",
    "shards",
    "running",
    "pending",
    "segments",
    "done",
    "parts",
    "events",
    "audit",
    "callbacks",
    "attempts",
)
_SHARED = ("leases", "shares", "latency", "workers", "metrics", "history", "cleanup", "notify", "callbacks_failed")


def request_digest(owner: str, request_id: str) -> str:
    """What stands for a requestId in a key: an owner cannot meet another owner's."""
    return hashlib.sha256(f"{owner}\0{request_id}".encode()).hexdigest()


def owner_digest(owner: str) -> str:
    return hashlib.sha256(owner.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class TaskRef:
    """What is needed to name every key of a task."""

    id: str
    owner: str
    request_id: str

    @property
    def cleanup_member(self) -> str:
        """Names the task in `export:cleanup`, enough to clean up when its hash is gone."""
        return f"{self.id}|{owner_digest(self.owner)}"


NO_TASK = TaskRef("", "", "")
"""For scripts that are about no task, or about many."""


def ref_of(task_id: str, request: ExportRequest) -> TaskRef:
    """What names the keys of a task that was read."""
    return TaskRef(task_id, request.owner, request.request_id)


def of_task(name: str, task_id: str) -> str:
    return f"{PREFIX}:{name}:{task_id}"


def runnable(step: Step) -> str:
    """Tasks that have a step of this class to do, by the time one was last claimed (ms)."""
    return f"{PREFIX}:runnable:{step}"


def index(state: State) -> str:
    """Tasks in a state, by the time they entered it (ms)."""
    return f"{PREFIX}:index:{state}"


def owner_index(digest: str, state: State | None = None) -> str:
    """Tasks of an owner, by the time of submit (ms); of one state, by the time they entered it."""
    return f"{PREFIX}:index:owner:{digest}" + (f":{state}" if state else "")


def owner_changed(digest: str) -> str:
    """Tasks of an owner, by the time of their last change (ms)."""
    return f"{PREFIX}:index:changed:{digest}"


def callbacks_due(endpoint: str) -> str:
    """Callbacks (`<task>|<callback>`) that an endpoint waits for, by the time of the next attempt (ms)."""
    return f"{PREFIX}:callbacks-due:{endpoint}"


IDENTITY = f"{PREFIX}:identity"
SWEEP_LOCK = f"{PREFIX}:sweep-lock"
WORKERS = f"{PREFIX}:workers"
METRICS = f"{PREFIX}:metrics"
SPOOL = f"{PREFIX}:spool"
"""`<bytes of its files>|<bytes free>`, for as long as that is news."""
HISTORY = f"{PREFIX}:history"
CLEANUP = f"{PREFIX}:cleanup"
NOTIFY = f"{PREFIX}:notify"
LOST = f"{PREFIX}:lost"
"""Workers whose lease has lapsed, by the time that they last renewed it (ms)."""
CALLBACKS_FAILED = f"{PREFIX}:callbacks_failed"
LEASES = f"{PREFIX}:leases"
RUNNING_PATTERN = f"{PREFIX}:running:*"


def own(ref: TaskRef) -> list[str]:
    """The keys that belong to one task alone."""
    return [names(ref)[name] for name in (*_OF_TASK, "request")]


@functools.lru_cache(maxsize=50)
def names(ref: TaskRef, *, endpoint: str = "") -> Mapping[str, str]:
    """Name in a script's header → key. endpoint: of the callback that the script is about.

    Those of the last tasks are kept: each page of a task needs them.
    """
    found = {name: of_task(name, ref.id) for name in _OF_TASK}
    found |= {name: f"{PREFIX}:{name}" for name in _SHARED}
    found |= {f"runnable_{step}": runnable(step) for step in Step}
    found |= {f"index_{state}": index(state) for state in State}
    found["request"] = f"{PREFIX}:request:{request_digest(ref.owner, ref.request_id)}"
    found["callbacks_due"] = callbacks_due(endpoint)
    owner = owner_digest(ref.owner)
    found["index_owner"] = owner_index(owner)
    found |= {f"owner_{state}": owner_index(owner, state) for state in (State.QUEUED, State.RUNNING)}
    found["owner_changed"] = owner_changed(owner)
    return found
