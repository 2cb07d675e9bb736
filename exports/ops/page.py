"""What a page of the site shows, before it is rendered; and the page that explains a refusal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from exports.errors import (
    ExportError,
    FieldInvalid,
    RequestRefused,
    StateUnavailable,
    TaskDeleted,
    TaskGone,
    TaskUnknown,
)
from exports.messages import PROBLEMS, Language, reason_text
from exports.ops.language import language_in_use
from exports.ops.texts import WORDS


@dataclass(frozen=True, slots=True)
class Page:
    template: str
    title: str
    context: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


def say(name: str, **facts: object) -> str:
    """A word of the site in the language in use."""
    return WORDS[name].say(language_in_use(), **facts)


def refused(error: ExportError | None) -> Page:
    """error: None where the operator has no right to act."""
    if error is None:
        problem, language = PROBLEMS["permission_denied"], language_in_use()
        return _refusal(problem.title.say(language), problem.detail.say(language), 403)
    if isinstance(error, StateUnavailable):
        return _refusal(say("away"), say("redis_away"), 503)
    if isinstance(error, TaskUnknown | TaskGone):
        return _refusal(say("missing"), why(error), PROBLEMS[error.code].status)
    problem = PROBLEMS[_known(error)]
    return _refusal(problem.title.say(language_in_use()), why(error), problem.status)


def stale_form() -> Page:
    """For a form whose token is not of this session."""
    return _refusal(PROBLEMS["permission_denied"].title.say(language_in_use()), say("stale_form"), 403)


def missing() -> Page:
    """For an address of the site that is none."""
    return _refusal(say("missing"), PROBLEMS["not_found"].detail.say(language_in_use()), 404)


def _refusal(title: str, text: str, status: int) -> Page:
    return Page("ops/refusal.html", title, {"text": text}, status)


def why(error: ExportError) -> str:
    """One sentence about a refusal."""
    language: Language = language_in_use()
    if isinstance(error, TaskDeleted):
        return PROBLEMS[error.code].detail.say(language)
    if isinstance(error, TaskUnknown | TaskGone):
        return say("no_such_task")
    facts = error.facts if isinstance(error, RequestRefused) else {}
    if isinstance(error, FieldInvalid):
        facts = {**facts, "reason": reason_text(error.reasons[error.field], language)}
    return PROBLEMS[_known(error)].detail.say(language, **facts)


def _known(error: ExportError) -> str:
    return error.code if error.code in PROBLEMS else "internal"
