"""The files of tasks that have succeeded, and what proves them."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from exports import formats, storage
from exports.contracts import Principal, State
from exports.errors import StateConflict, TaskGone
from exports.pipeline import endings, manifest, verifying
from exports.pipeline.verifying import Proof
from exports.service.tasks import read_task
from exports.telemetry import logs
from exports.views import TaskView

_events = logs.events(__name__)


@dataclass(frozen=True, slots=True)
class Artifact:
    """A finished file. read: (offset, length) → chunks.

    link: `Content-Disposition` → a URL that serves the file for a minute, never to be stored or logged; None where it
    is to be streamed.
    """

    file_name: str
    content_type: str
    size: int
    sha256: str
    epoch: int
    trace_id: str
    read: Callable[[int, int], Iterator[bytes]]
    link: Callable[[str], str | None]


def open_file(task_id: str, *, principal: Principal) -> Artifact:
    """The finished file.

    Raises: StateConflict `file_not_ready`, TaskGone when the file is kept no longer; as `read_task`.
    """
    view = _read_succeeded(task_id, principal=principal)
    artifacts = storage.artifacts()
    if artifacts.size(view.object_key) != view.file_size or view.file_size is None:
        raise _lost(view, view.object_key)
    output = formats.get(view.request.format)
    return Artifact(
        file_name=view.file_name,
        content_type=output.content_type,
        size=view.file_size,
        sha256=view.sha256,
        epoch=view.epoch,
        trace_id=view.trace_id,
        read=lambda offset, length: artifacts.read(view.object_key, offset, length),
        link=lambda disposition: artifacts.link(
            view.object_key, content_type=output.content_type, disposition=disposition
        ),
    )


def read_manifest(task_id: str, *, principal: Principal) -> bytes:
    """The manifest of a finished file: JSON, UTF-8. Raises as `open_file`."""
    return _read_manifest(_read_succeeded(task_id, principal=principal))


def _read_manifest(view: TaskView) -> bytes:
    key = manifest.key(view.object_key)
    size = storage.artifacts().size(key)
    if size is None:
        raise _lost(view, key)
    return b"".join(storage.artifacts().read(key, 0, size))


def verify(task_id: str, *, principal: Principal) -> Proof:
    """Whether a finished file agrees with its manifest and the database. Reads all of it.

    Raises: StepBroken for a damaged manifest, SourceUnavailable, StoreUnavailable; as `open_file`.
    """
    view = _read_succeeded(task_id, principal=principal)
    return verifying.verify(view, _read_manifest(view))


def _read_succeeded(task_id: str, *, principal: Principal) -> TaskView:
    view = read_task(task_id, principal=principal)
    if view.state is not State.SUCCEEDED:
        raise StateConflict("file_not_ready", view.state)
    return view


def _lost(view: TaskView, object_key: str) -> TaskGone:
    """An object that is not there, or not whole; before its time somebody must look."""
    if keeps_file(view):
        _events.error("file.lost", taskId=view.task_id, traceId=view.trace_id, objectKey=object_key)
    return TaskGone("the file is kept no longer")


def keeps_file(view: TaskView) -> bool:
    """Whether the file of a task must be there: one that is gone before its time is lost, and somebody must look."""
    expires_at = file_expires_at(view)
    return expires_at is not None and view.read_at < expires_at


def file_expires_at(view: TaskView) -> dt.datetime | None:
    """When the file of a task is removed; None while there is none."""
    return endings.file_expires_at(view)
