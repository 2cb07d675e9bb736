"""The error tree. A class is a different reaction of the caller; `code` is stable and public.

ExportError
├── RequestRefused         tell the user; nothing was written
│   ├── FieldInvalid         400, names the fields
│   ├── WindowTooLong        422
│   ├── RequestConflict      409, the requestId belongs to another body
│   ├── StateConflict        409, the task's state does not allow it
│   ├── LimitReached         429, the owner has too much under way
│   ├── TaskUnknown          404, unknown or not yours
│   └── TaskGone             410, kept no longer
│       └── TaskDeleted        removed by a person before its time
├── StateUnavailable       503; a step stops and the sweep goes on later
├── LeaseLost              stop at once, touch nothing
├── TaskStopped            the task was cancelled or has ended: stop at once
├── StepFailed             a step did not do its work
│   ├── SourceUnavailable    read the same page again: time-out, lost connection, replica conflict
│   ├── PageTooLarge         read a smaller page
│   ├── SpoolFull            fail; cut what is not committed
│   ├── SegmentDamaged       read that shard again
│   ├── StoreUnavailable     write the artifact again
│   └── StepBroken           fail; wake someone
└── SettingInvalid         refuse to start; names the setting
"""

from collections.abc import Mapping
from types import MappingProxyType

from exports.contracts import State
from exports.views import Deletion, TaskView


class ExportError(Exception):
    """Base of all. Facts are attributes; texts carry no internals and no cell of any row but its key."""

    code = "internal"
    retryable = False


class RequestRefused(ExportError):
    """facts: what its sentence in `exports.messages.PROBLEMS` names."""

    code = "bad_request"

    def __init__(self, text: str = "", **facts: object) -> None:
        super().__init__(text)
        self.facts = facts


class FieldInvalid(RequestRefused):
    """Fields of the request are wrong. Each reason is a sentence in English; no value but a name that an operator gave.

    others: further wrong fields and their reasons.
    """

    code = "invalid_field"

    def __init__(self, field: str, reason: str, others: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(f"{field}: {reason}", field=field, reason=reason)
        self.field = field
        self.reasons = {field: reason, **others}


class WindowTooLong(RequestRefused):
    code = "window_too_long"

    def __init__(self, days: int, limit: int) -> None:
        super().__init__(f"the window has {days} days, at most {limit} are allowed", days=days, limit=limit)


class RequestConflict(RequestRefused):
    code = "request_conflict"


class StateConflict(RequestRefused):
    """The task's state does not allow what was asked. `code` says which: see `exports.messages`."""

    def __init__(self, code: str, state: State) -> None:
        super().__init__(f"{code}: the task is {state}", state=state)
        self.code = code


class LimitReached(RequestRefused):
    """`code`: `queue_full` or `too_many_submits`. running: the owner's task that is first to end, if there is one."""

    def __init__(self, code: str, *, limit: int, retry_after_s: int, running: TaskView | None) -> None:
        super().__init__(code, limit=limit)
        self.code = code
        self.retry_after_s = retry_after_s
        self.running = running


class TaskUnknown(RequestRefused):
    code = "task_not_found"


class TaskGone(RequestRefused):
    code = "task_gone"


class TaskDeleted(TaskGone):
    code = "task_deleted"

    def __init__(self, deletion: Deletion) -> None:
        super().__init__(f"deleted by {deletion.by}")
        self.deletion = deletion


class StateUnavailable(ExportError):
    code = "state_unavailable"
    retryable = True


class LeaseLost(ExportError):
    code = "lease_lost"


class TaskStopped(ExportError):
    code = "task_stopped"


class StepFailed(ExportError):
    code = "unclassified"


class SourceUnavailable(StepFailed):
    """`code`: `database_timeout`, `database_connection` or `replica_conflict`."""

    retryable = True

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class PageTooLarge(StepFailed):
    code = "page_too_large"


class SpoolFull(StepFailed):
    code = "disk_full"
    retryable = True


class SegmentDamaged(StepFailed):
    """Committed bytes are missing or differ. `shard_ids` must be read again from their first row."""

    code = "spool_lost"

    def __init__(self, shard_ids: tuple[str, ...]) -> None:
        super().__init__(", ".join(shard_ids))
        self.shard_ids = shard_ids


class StoreUnavailable(StepFailed):
    """part: which part of an upload failed, from 1; 0 for none."""

    code = "store_unavailable"
    retryable = True

    def __init__(self, reason: str, *, part: int = 0) -> None:
        super().__init__(reason)
        self.part = part


class StepBroken(StepFailed):
    pass


class SettingInvalid(ExportError):
    """A setting has a wrong value. `name` is the setting's own name."""

    code = "setting_invalid"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason
