"""Every task that was asked for, what it promised, and every break of a promise.

Asks through the API only, as a front end does. A file is compared with the orders in the database, and byte by byte
with every other file of the same window and format.
"""

import csv
import hashlib
import io
import json
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import openpyxl

from tests.processes import Site

ENDED = ("succeeded", "failed", "cancelled")
FORGIVEN = {"database_connection", "database_timeout", "poison"}
"""What enough faults in a row may do to a task: it fails in a defined way, and a rerun ends in the whole file."""
_API = "/api/orders/export"
_NO_ANSWER = 0
_AWAY = (_NO_ANSWER, 503)
"""Statuses of a service that is away; whether a submit was taken is then not known."""


@dataclass(slots=True)
class Task:
    task_id: str
    owner: str
    body: dict[str, str]
    submitted_at: float
    cancelled_at: float | None = None
    state: str = "queued"
    processed: int = 0
    reruns: int = 0

    @property
    def window(self) -> tuple[str, str]:
        return self.body["from"], self.body["to"]


class Ledger:
    """tokens: owner → token. expected: day → (key, order number) of its rows in file order.

    violations: broken promises, in words. counts: what happened. unanswered: submits to be repeated.
    """

    def __init__(self, site: Site, *, tokens: dict[str, str], expected: dict[str, list[tuple[str, str]]]) -> None:
        self.violations: list[str] = []
        self.counts: Counter[str] = Counter()
        self.tasks: dict[str, Task] = {}
        self.unanswered: list[tuple[str, dict[str, str]]] = []
        self._site = site
        self._tokens = tokens
        self._expected = expected
        self._digests: dict[tuple[str, str, str], str] = {}

    @property
    def open(self) -> list[Task]:
        return [task for task in self.tasks.values() if task.state not in ENDED or task.state == "failed"]

    # --- loads -----------------------------------------------------------------------------

    def submit(self, owner: str, body: dict[str, str], *, times: int = 1) -> None:
        """Post one body, `times` at once; the answers must name one task."""
        answers: list[tuple[int, bytes]] = []
        threads = [
            threading.Thread(target=lambda: answers.append(self._call("POST", _API, owner, body))) for _ in range(times)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for status, answer in answers:
            self._accepted(owner, body, status, answer)

    def _accepted(self, owner: str, body: dict[str, str], status: int, answer: bytes) -> None:
        self.counts["submits"] += 1
        if status in _AWAY:
            self.counts["submits without an answer"] += 1
            if (owner, body) not in self.unanswered:
                self.unanswered.append((owner, body))
            return
        if status not in (200, 202):
            self.break_promise(f"a submit was answered {status} {answer[:200]!r}")
            return
        task_id = json.loads(answer)["taskId"]
        known = [task for task in self.tasks.values() if (task.owner, task.body) == (owner, body)]
        if known and known[0].task_id != task_id:
            self.break_promise(f"requestId {body['requestId']} has two tasks: {known[0].task_id}, {task_id}")
        self.tasks.setdefault(task_id, Task(task_id, owner, body, time.monotonic()))

    def cancel(self, task: Task) -> None:
        status, answer = self._call("POST", f"{_API}/{task.task_id}/cancel", task.owner)
        if status in (200, 202):
            task.cancelled_at = task.cancelled_at or time.monotonic()
            self.counts["cancels"] += 1
        elif status not in (*_AWAY, 409):
            self.break_promise(f"cancel of {task.task_id} was answered {status} {answer[:200]!r}")

    # --- what must be true -----------------------------------------------------------------

    def look(self) -> None:
        """Repeat the submits that nobody answered, then read every task that has not ended well and check it.

        Ends at the first call without an answer: the next ones would wait as long.
        """
        waiting, self.unanswered = self.unanswered, []
        while waiting:
            self.submit(*waiting.pop(0))
            if self.unanswered:
                self.unanswered += waiting
                return
        for task in self.open:
            status, answer = self._call("GET", f"{_API}/{task.task_id}", task.owner)
            if status in _AWAY:
                return
            if status == 200:
                self._check(task, json.loads(answer))
            else:
                self.break_promise(f"{task.task_id} is answered {status}: an accepted task is lost")

    def _check(self, task: Task, found: dict[str, Any]) -> None:
        if found["state"] != "succeeded" and found["processed"] < task.processed:
            self.break_promise(f"{task.task_id}: progress fell from {task.processed} to {found['processed']}")
        task.state, task.processed = found["state"], found["processed"]
        if task.state == "succeeded":
            self._check_file(task, found)
        elif task.state == "failed":
            self._run_again(task, found)
        elif task.state == "cancelled":
            self.counts["cancelled"] += 1
            if task.cancelled_at is None:
                self.break_promise(f"{task.task_id} is cancelled, and nobody asked for it")

    def _run_again(self, task: Task, found: dict[str, Any]) -> None:
        if found["errorCode"] not in FORGIVEN:
            self.break_promise(f"{task.task_id} failed: {found['errorCode']}, {found['error']}")
        status, answer = self._call("POST", f"{_API}/{task.task_id}/rerun", task.owner)
        if status in (200, 202):
            task.reruns += 1
            task.state, task.processed = "queued", 0
            self.counts[f"failed by {found['errorCode']} and run again"] += 1
        elif status not in _AWAY:
            self.break_promise(f"rerun of {task.task_id} was answered {status} {answer[:200]!r}")

    def _check_file(self, task: Task, found: dict[str, Any]) -> None:
        status, data = self._call("GET", found["downloadUrl"], task.owner)
        if status in _AWAY:
            task.state = "running"  # looked at again
            return
        output = task.body["format"]
        rows = [row for day in self._days(task) for row in self._expected[day]]
        if status != 200 or hashlib.sha256(data).hexdigest() != found["sha256"]:
            self.break_promise(f"{task.task_id}: the download is answered {status}, or is not what was rendered")
            return
        bytes_seen = digest(data, output)
        if read_rows(data, output) != rows:
            self.break_promise(f"{task.task_id}: the file does not hold the rows of the database, once and in order")
        if self._digests.setdefault((*task.window, output), bytes_seen) != bytes_seen:
            self.break_promise(f"{task.task_id}: two files of one window differ")
        if found["processed"] != len(rows) or found["drift"]["kind"] == "changed":
            self.break_promise(f"{task.task_id}: {found['processed']} of {len(rows)} rows, drift {found['drift']}")
        if task.cancelled_at is not None:
            self.break_promise(f"{task.task_id}: the cancel was accepted, and yet there is a file")
        self.counts["files compared with the database"] += 1
        self.counts["rows compared with the database"] += len(rows)

    def _days(self, task: Task) -> list[str]:
        first, last = task.window
        return [day for day in sorted(self._expected) if first <= day <= last]

    def break_promise(self, what: str) -> None:
        if what not in self.violations:
            print(f"  BROKEN: {what}", flush=True)
            self.violations.append(what)

    def _call(self, method: str, path: str, owner: str, body: object = None) -> tuple[int, bytes]:
        try:
            status, _, answer = self._site.call(
                method, path, body, Authorization=f"Bearer {self._tokens[owner]}", **{"Accept-Language": "en"}
            )
        except Exception:  # noqa: BLE001  # a web process killed within an answer: each layer has errors of its own
            return _NO_ANSWER, b""
        return status, answer


def read_rows(data: bytes, output: str) -> list[tuple[str, str]]:
    """(key, order number) of every row; the header is left out."""
    rows: Sequence[Sequence[object]]
    if output == "csv":
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True))
    else:
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True)
        rows = [row for sheet in book.worksheets for row in sheet.iter_rows(values_only=True, max_col=2)]
        book.close()
    return [(str(row[0]), str(row[1])) for row in rows[1:]]


def digest(data: bytes, output: str) -> str:
    """Of all bytes that must not differ between two runs."""
    if output == "csv":
        return hashlib.sha256(data).hexdigest()
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        members = {name: book.read(name) for name in book.namelist() if name != "docProps/core.xml"}
    return hashlib.sha256(b"".join(name.encode() + members[name] for name in sorted(members))).hexdigest()
