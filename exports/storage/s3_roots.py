"""What spool and store in a bucket have in common: the identity object, and the tasks and times of their objects.

root: what the names of one of them begin with, empty or ending in a slash.
"""

from contextlib import suppress

from exports.contracts import TASK_PREFIX
from exports.storage.s3_bucket import Bucket

_NAME = "identity"


def read_identity(bucket: Bucket, root: str = "") -> str:
    """The identity of the Redis that a root belongs to; empty when nothing says so."""
    with suppress(FileNotFoundError):
        return bucket.get(f"{root}{_NAME}").decode("ascii").strip()
    return ""


def write_identity(bucket: Bucket, identity: str, root: str = "") -> None:
    """Say which Redis a root belongs to, for good."""
    bucket.put(f"{root}{_NAME}", f"{identity}\n".encode("ascii"))


def task_ids(bucket: Bucket, root: str = "") -> set[str]:
    """Ids of all tasks that have an object."""
    found = bucket.objects(f"{root}{TASK_PREFIX}")
    return {name.removeprefix(root).partition("/")[0] for name, _ in found}


def changed_at(bucket: Bucket, task_id: str, root: str = "") -> float:
    """Unix time of the last change to a task's objects; 0 when it has none."""
    return max((at for _, at in bucket.objects(f"{root}{task_id}/")), default=0.0)
