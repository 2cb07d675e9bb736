"""What all commands share: an answer as text or JSON, one sentence for a refusal, and the exit code.

0 done, 1 refused or failed, 2 used wrongly. Commands act as an operator: they reach the tasks of every owner.
"""

import json
import logging
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from exports.contracts import Principal, Right
from exports.errors import (
    ExportError,
    FieldInvalid,
    RequestRefused,
    SourceUnavailable,
    StateUnavailable,
    StoreUnavailable,
    TaskDeleted,
    TaskUnknown,
)
from exports.messages import PROBLEMS, Language
from exports.pipeline import audit
from exports.views import to_second

OPERATOR = Principal("ops", frozenset(Right))


@dataclass(frozen=True, slots=True)
class Answer:
    """lines: for people. data: the same for programs. done: False makes the exit code 1."""

    lines: Sequence[str]
    data: Mapping[str, Any]
    done: bool = True


class ExportCommand(BaseCommand):
    """A subclass adds its arguments and gives an answer."""

    # `export_doctor` tells what is wrong with the settings; the others must work all the same.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object on stdout")

    def answer(self, given: dict[str, Any]) -> Answer:
        """Raises: ExportError."""
        raise NotImplementedError

    def run_from_argv(self, argv: list[str]) -> None:
        """As Django, from a shell: what a log is told of a change of state would stand between the lines of the answer."""
        logging.getLogger().setLevel(max(logging.WARNING, logging.getLogger().level))
        super().run_from_argv(argv)

    def handle(self, *_: Any, **given: Any) -> None:
        as_json = given["json"]
        try:
            answer = self.answer(given)
        except ExportError as error:
            if as_json:
                self._write_json({"error": sentence(error), "code": error.code})
            raise CommandError(sentence(error)) from error
        if as_json:
            self._write_json(answer.data)
        else:
            for line in answer.lines:
                self.stdout.write(line)
        if not answer.done:
            raise SystemExit(1)

    def _write_json(self, data: Mapping[str, Any]) -> None:
        self.stdout.write(json.dumps(data, ensure_ascii=False))


def note(action: str, *, task_id: str, trace_id: str, result: str) -> None:
    """Audit what a command did."""
    audit.record(action, task_id=task_id, trace_id=trace_id, by=OPERATOR.owner, result=result)


class TaskCommand(ExportCommand):
    """A command about one task."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("task", help="taskId, such as exp_01J8Z4K2…")


def sentence(error: ExportError) -> str:
    """What happened, in words that need no code."""
    if isinstance(error, TaskDeleted):
        why = f": {error.deletion.reason}" if error.deletion.reason else "."
        return f"The task was deleted at {to_second(error.deletion.at)} by {error.deletion.by}{why}"
    if isinstance(error, FieldInvalid):
        return f"{error.field} {error.facts['reason']}."
    if isinstance(error, TaskUnknown):
        return "There is no such task."
    if isinstance(error, StateUnavailable):
        return f"Redis does not answer or refuses ({error})."
    if isinstance(error, SourceUnavailable):
        return f"The orders database does not answer or refuses ({error})."
    if isinstance(error, StoreUnavailable):
        return f"The file store does not answer or refuses ({error})."
    if isinstance(error, RequestRefused):
        return PROBLEMS[error.code].detail.say(Language.EN, **error.facts)
    return str(error)
