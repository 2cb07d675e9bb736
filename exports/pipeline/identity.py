"""Whether spool, store and Redis belong together.

Each root has a file with the identity of its Redis. What a strange or emptied Redis does not know is not rubbish, so
nothing unknown is removed until all three agree.
"""

import uuid
from typing import Protocol

from ulid import ULID

from exports import storage
from exports.contracts import TASK_PREFIX
from exports.state.store import store
from exports.telemetry import logs

_events = logs.events(__name__)


def made_at_s(task_id: str) -> float | None:
    """Unix time at which a task id was made; None for what cannot be one."""
    try:
        return float(ULID.from_str(task_id.removeprefix(TASK_PREFIX)).timestamp)
    except ValueError:
        return None


class Root(Protocol):
    """What spool and store have in common."""

    def task_ids(self) -> list[str]: ...
    def changed_at(self, task_id: str) -> float: ...
    def read_identity(self) -> str: ...
    def write_identity(self, identity: str) -> None: ...


def roots() -> dict[str, Root]:
    return {"spool": storage.spool(), "store": storage.artifacts()}


def settle() -> str:
    """Why spool, store and Redis do not belong together; empty when they do.

    A root without a file joins this Redis if all tasks in it are known here, so a new installation settles itself.
    """
    reason = _disagreement()
    if reason:
        _events.error("identity.foreign", reason=reason)
        return reason
    identity = store().identity(uuid.uuid4().hex)
    for root in roots().values():
        if not root.read_identity():
            root.write_identity(identity)
    return ""


def _disagreement() -> str:
    for name, root in roots().items():
        found = root.read_identity()
        # After the root: whoever settles at the same moment writes the one of Redis first.
        known = store().known_identity()
        if found and known is None:
            return f"Redis has no identity, but the {name} belongs to one: this Redis is empty or another one"
        if found and found != known:
            return f"the {name} belongs to another Redis"
        if not found and unknown(root):
            return f"the {name} holds tasks that this Redis does not know, and no identity file"
    return ""


def unknown(root: Root) -> list[str]:
    """Ids of tasks that have files in a root and are not in Redis."""
    found = [task_id for task_id in root.task_ids() if task_id.startswith(TASK_PREFIX)]
    return [task_id for task_id in found if store().ref(task_id) is None]
