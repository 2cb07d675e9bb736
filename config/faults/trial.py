"""One trial: tasks of an owner of its own, done by workers of its own, through the one door that every front has."""

import hashlib
import signal
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from config.faults.window import Window
from config.faults.workers import Workers
from exports import service
from exports.contracts import ExportRequest, Format, Phase, Principal, Right, State
from exports.errors import ExportError
from exports.operations import listing
from exports.operations.listing import Wanted
from exports.views import TaskView

LIMIT_S = 60.0
"""Longest time that any task of a trial may take; with faults, most of it are leases that run out."""
TRIES = 25
_ARRIVES_S = 0.2
"""What a worker had sent when it was stopped has reached Redis by then."""
_LOOK_EVERY_S = 0.0005
_SILENCE_LIMIT_S = 20.0


class OthersAtWork(ExportError):
    """Workers or tasks of others are there: they would do the work, or come to harm."""

    code = "others_at_work"


class Broken(Exception):
    """A criterion does not hold; the text says what was seen."""


@dataclass(slots=True)
class Trial:
    """sha256: of the undisturbed export, which every other one must equal; empty before that one was made.

    left: tasks that `clean_up` could not remove, and why.
    """

    kind: str
    window: Window
    workers: Workers
    owner: str
    sha256: str = ""
    left: list[str] = field(default_factory=list)

    @property
    def principal(self) -> Principal:
        return Principal(self.owner, frozenset({Right.SUBMIT, Right.VIEW}))

    def request(self, request_id: str = "") -> ExportRequest:
        return ExportRequest(
            kind=self.kind,
            owner=self.owner,
            request_id=request_id or uuid.uuid4().hex,
            first_day=self.window.first_day,
            last_day=self.window.last_day,
            format=Format.CSV,
        )

    def submit(self) -> str:
        return service.submit(self.request(), traceparent=None).task_id

    def read(self, task_id: str) -> TaskView:
        return service.read_task(task_id, principal=self.principal)

    def wait(self, task_id: str) -> TaskView:
        """The task at its end. Raises: Broken when it does not come to one."""
        return self.wait_for(task_id, lambda view: view.state.ended, limit_s=LIMIT_S)

    def wait_for(self, task_id: str, condition: Callable[[TaskView], bool], *, limit_s: float) -> TaskView:
        deadline = time.monotonic() + limit_s
        while not condition(view := self.read(task_id)):
            if time.monotonic() >= deadline:
                raise Broken(f"{task_id} is {view.state}, phase {view.phase or '-'}, after {limit_s:.0f} s")
            time.sleep(0.02)
        return view

    def whole(self, task_id: str) -> TaskView:
        """The task, succeeded, with every row and the bytes of the undisturbed export. Raises: Broken."""
        view = self.wait(task_id)
        if view.state is not State.SUCCEEDED:
            code = view.failure.code if view.failure else "-"
            raise Broken(f"{task_id} {view.state}, {code}")
        found = self.read_digest(task_id)
        if found != view.sha256:
            raise Broken(f"{task_id}: the stored file is not the one that was rendered")
        if self.sha256 not in ("", found):
            raise Broken(f"{task_id}: other bytes than the undisturbed export; did rows change in between?")
        return view

    def read_digest(self, task_id: str) -> str:
        """Of the bytes in the store."""
        artifact = service.open_file(task_id, principal=self.principal)
        digest = hashlib.sha256()
        for chunk in artifact.read(0, artifact.size):
            digest.update(chunk)
        return digest.hexdigest()

    def stop_in(self, phase: Phase) -> TaskView:
        """A task in the middle of a phase, with every worker stopped. Raises: Broken when none can be caught there."""
        for _ in range(TRIES):
            task_id = self.submit()
            while not (view := self.read(task_id)).state.ended:
                if _in_the_middle(view, phase):
                    self.workers.send(signal.SIGSTOP)
                    time.sleep(_ARRIVES_S)
                    view = self.read(task_id)
                    if _in_the_middle(view, phase):
                        return view
                    self.workers.send(signal.SIGCONT)
                time.sleep(_LOOK_EVERY_S)
            self.whole(task_id)
        raise Broken(f"{TRIES} exports were too quick to be stopped in {phase}")

    def clean_up(self) -> None:
        """Remove every task of this trial with all that it holds. The workers must have ended."""
        for view in service.list_tasks(principal=self.principal, limit=10_000):
            try:
                self._remove(view)
            except (ExportError, Broken) as error:
                self.left.append(f"{view.task_id} {error}")

    def _remove(self, view: TaskView) -> None:
        if not view.state.ended:
            service.cancel(view.task_id, principal=self.principal)
            self.wait(view.task_id)
        service.forget(view.task_id, principal=self.principal)


def refuse_others() -> None:
    """Raises: OthersAtWork when a worker lives or a task of another owner is not done."""
    deadline = time.monotonic() + _SILENCE_LIMIT_S
    while service.live_workers():
        # One that has just been stopped still counts for some seconds.
        if time.monotonic() >= deadline:
            raise OthersAtWork(
                "other workers are at work with this Redis: stop them first, or try on another installation"
            )
        time.sleep(0.5)
    for state in (State.QUEUED, State.RUNNING):
        if listing.find(Wanted(state=state), limit=1).tasks:
            raise OthersAtWork(f"there are {state} tasks: let them end first, or try on another installation")


def _in_the_middle(view: TaskView, phase: Phase) -> bool:
    """Of fetch: with a third of the rows read, and some still to come."""
    if view.state.ended or view.phase is not phase:
        return False
    total = view.total or 0
    return phase is not Phase.FETCH or total <= 3 * view.processed < 3 * total
