"""`manage.py export_faults`: does this installation keep its promise on its own table? Tried with real faults."""

import datetime as dt
import signal
import tempfile
import uuid
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.faults import trial as trials
from config.faults import window as windows
from config.faults.criteria import CRITERIA
from config.faults.trial import Broken, Trial
from config.faults.workers import Workers
from exports import service
from exports.errors import ExportError
from exports.management import arguments
from exports.management.base import Answer, ExportCommand
from exports.messages import Language, Text

_INTERRUPTED = 130
_PASSED = Text("通过", "passed")
_FAILED = Text("未通过", "FAILED")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the answer. seen: in both languages."""

    name: str
    criterion: Text
    passed: bool
    seen: Text

    def line(self, language: Language) -> str:
        verdict = _PASSED if self.passed else _FAILED
        return " · ".join(text.as_it_is(language) for text in (self.criterion, verdict, self.seen))

    def data(self, language: Language) -> dict[str, object]:
        return {"name": self.name, "passed": self.passed, "seen": self.seen.as_it_is(language)}


class Command(ExportCommand):
    help = (
        "Runs the acceptance list on the first kind and its table: kill -9 in each phase, a stopped worker, a cancel, "
        "a failure, ten submits at once. Starts workers of its own, so no other may run with this Redis. Reads the "
        "orders database only; removes its tasks and files at the end. Exit code 1 when a criterion failed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--kind", type=arguments.not_empty, help="name of the kind (the first one)")
        parser.add_argument("--from", dest="first_day", type=arguments.day, metavar="DAY", help="first day (chosen)")
        parser.add_argument(
            "--to", dest="last_day", type=arguments.day, metavar="DAY", help="last day (that of --from)"
        )
        parser.add_argument(
            "--only",
            nargs="+",
            choices=list(CRITERIA),
            default=list(CRITERIA),
            metavar="CRITERION",
            help=f"only these: {', '.join(CRITERIA)}",
        )
        parser.add_argument("--language", choices=[language.value for language in Language], default="en")

    def answer(self, given: dict[str, Any]) -> Answer:
        language = Language(given["language"])
        kind, owner = given["kind"] or service.default_kind(), f"export_faults {uuid.uuid4().hex}"
        trials.refuse_others()
        window = _window(kind, given["first_day"], given["last_day"])
        try:
            with _opened(kind, owner, window) as trial:
                rows = _try_all(trial, given["only"])
        except KeyboardInterrupt:
            raise SystemExit(_INTERRUPTED) from None
        rows.append(_cleaned(trial))
        heading = f"{kind} {window.first_day} … {window.last_day}, {window.rows:,} rows, pages of {window.page_rows}"
        data = {
            "kind": kind,
            "from": f"{window.first_day}",
            "to": f"{window.last_day}",
            "rows": window.rows,
            "criteria": [row.data(language) for row in rows],
        }
        return Answer([heading, *(row.line(language) for row in rows)], data, done=all(row.passed for row in rows))


def _window(kind: str, first_day: dt.date | None, last_day: dt.date | None) -> windows.Window:
    if first_day is None:
        return windows.choose(kind, today=dt.datetime.now(dt.UTC).date())
    return windows.given(kind, first_day, last_day or first_day)


@contextmanager
def _opened(kind: str, owner: str, window: windows.Window) -> Iterator[Trial]:
    """A trial with its workers; nothing of it is left afterwards, also after SIGTERM or Ctrl-C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    pages = {"EXPORTS_PAGE_ROWS": str(window.page_rows), "EXPORTS_PAGE_ROWS_MIN": str(max(1, window.page_rows // 2))}
    with tempfile.TemporaryDirectory(prefix="export-faults-") as folder:
        workers = Workers(Path(folder), pages)
        trial = Trial(kind, window, workers, owner)
        try:
            workers.start()
            yield trial
        finally:
            workers.kill()
            trial.clean_up()
            signal.signal(signal.SIGTERM, before)


def _try_all(trial: Trial, names: Sequence[str]) -> list[Row]:
    """The undisturbed export is always made: its bytes are what the others must have."""
    return [_try(trial, name) for name in CRITERIA if name in ("undisturbed", *names)]


def _try(trial: Trial, name: str) -> Row:
    perform, criterion = CRITERIA[name]
    try:
        return Row(name, criterion, True, perform(trial))
    except (Broken, ExportError) as error:
        # The next one starts from a whole crew.
        trial.workers.kill()
        trial.workers.start()
        seen = str(error) or type(error).__name__
        return Row(name, criterion, False, Text(seen, seen))


def _cleaned(trial: Trial) -> Row:
    left = "; ".join(trial.left)
    seen = Text(left, left) if left else Text("任务和文件均已删除", "all tasks and files are removed")
    return Row("clean_up", Text("不留下任何任务和文件", "nothing is left behind"), not left, seen)
