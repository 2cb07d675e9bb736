"""The one door to the exports for the API, the ops page and the commands.

access.py     which tasks a principal may see and change
tasks.py      submit, read, list
acting.py     cancel, rerun, delete
files.py      the file, its manifest, its proof
callbacks.py  what others were told
upkeep.py     the service as a whole: counters, sweep, purge, doctor
"""

from exports.service.acting import REASON_MAX, Deleted, cancel, check_rerun, delete, rerun, unknown_shard
from exports.service.callbacks import (
    Replayed,
    last_callbacks,
    ping_endpoint,
    read_callbacks,
    replay_callbacks,
    replay_failed_callbacks,
)
from exports.service.files import Artifact, file_expires_at, keeps_file, open_file, read_manifest, verify
from exports.service.tasks import (
    Details,
    Submitted,
    default_kind,
    estimate,
    is_stalled,
    list_changed,
    list_tasks,
    must_mask,
    now,
    read_audit,
    read_details,
    read_task,
    submit,
)
from exports.service.upkeep import (
    diagnose,
    forget,
    live_workers,
    ping,
    purge,
    queue_lengths,
    read_counters,
    read_signs,
    redis_problems,
    sweep_once,
)

__all__ = [
    "REASON_MAX",
    "Artifact",
    "Deleted",
    "Details",
    "Replayed",
    "Submitted",
    "cancel",
    "check_rerun",
    "default_kind",
    "delete",
    "diagnose",
    "estimate",
    "file_expires_at",
    "forget",
    "is_stalled",
    "keeps_file",
    "last_callbacks",
    "list_changed",
    "list_tasks",
    "live_workers",
    "must_mask",
    "now",
    "open_file",
    "ping",
    "ping_endpoint",
    "purge",
    "queue_lengths",
    "read_audit",
    "read_callbacks",
    "read_counters",
    "read_details",
    "read_manifest",
    "read_signs",
    "read_task",
    "redis_problems",
    "replay_callbacks",
    "replay_failed_callbacks",
    "rerun",
    "submit",
    "sweep_once",
    "unknown_shard",
    "verify",
]
