"""Log lines: one event per change of state, a dotted constant name, ids and numbers as fields.

    events = logs.events(__name__)
    with logs.bound(taskId=task_id, shardId=shard_id):
        events.info("shard.committed", rows=2000)

`taskId`, `shardId` and `traceId` are bound once and stand on every line below, those of libraries included.
info: a state changed. warning: it will be tried again. error: someone must look.

No cell of any row is ever a field; a row's key, or its cursor, may be. The text of a foreign exception is left out for the same
reason (a driver's message can quote the row), its class and its place are kept.
"""

import datetime as dt
import json
import logging
import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import MappingProxyType
from typing import Any

from pythonjsonlogger.core import LogData
from pythonjsonlogger.json import JsonFormatter

from exports.errors import ExportError
from exports.telemetry import trace

Field = str | int | float | bool | None
Bound = Token[Mapping[str, Field]]

_bound: ContextVar[Mapping[str, Field]] = ContextVar("log_fields", default=MappingProxyType({}))
_EVENT = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
_FRAMES = 8
"""Most causes, and most places of each, that a line holds."""
_WITH_HANDLERS = ("django", "django.server", "gunicorn.error")
"""Loggers whose libraries give them handlers of their own; they are taken off."""
_SPEAKING = (ExportError, ImportError, OSError)
"""Exceptions whose text cannot quote a row."""


class Events:
    """Writes the events of one module. A name is a dotted constant: `task.submitted`."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def info(self, name: str, /, **fields: Field) -> None:
        self._write(logging.INFO, name, fields)

    def warning(self, name: str, /, *, error: BaseException | None = None, **fields: Field) -> None:
        self._write(logging.WARNING, name, fields, error)

    def error(self, name: str, /, *, error: BaseException | None = None, **fields: Field) -> None:
        self._write(logging.ERROR, name, fields, error)

    def _write(self, level: int, name: str, fields: Mapping[str, Field], error: BaseException | None = None) -> None:
        if not _EVENT.fullmatch(name):
            raise ValueError(f"not a dotted event name: {name!r}")
        self._logger.log(level, name, extra={"event_fields": fields}, exc_info=error)


def events(module: str) -> Events:
    return Events(logging.getLogger(module))


def bind(**fields: Field) -> Bound:
    """Add fields to every later line of this thread; `unbind` with what this returns takes them off again."""
    return _bound.set({**_bound.get(), **fields})


def unbind(token: Bound) -> None:
    _bound.reset(token)


@contextmanager
def bound(**fields: Field) -> Iterator[None]:
    """`bind` for a block."""
    token = bind(**fields)
    try:
        yield
    finally:
        unbind(token)


def configuration(*, as_json: bool, level: str = "INFO") -> dict[str, Any]:
    """The value of Django's `LOGGING`: every logger of the process writes lines of one form to standard error."""
    formatter = JsonLines if as_json else TextLines
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": f"{__name__}.{formatter.__name__}"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            **{name: {"handlers": [], "propagate": True} for name in _WITH_HANDLERS},
            "django.request": {"filters": [_is_untold]},
            # gunicorn writes a line a request as soon as it has a logging configuration; the line would hold the
            # signature of a download link.
            "gunicorn.access": {"handlers": [], "propagate": False},
        },
    }


def _is_untold(record: logging.LogRecord) -> bool:
    """The API tells a 503 itself, as a warning; Django would call it an error."""
    return getattr(record, "status_code", None) != 503


class JsonLines(JsonFormatter):
    """One JSON object a line; JSON itself escapes every line break."""

    def add_fields(self, log_data: LogData, record: logging.LogRecord, message_dict: LogData) -> None:
        log_data.update(_line(record))


class TextLines(logging.Formatter):
    """`time level logger event key=value …`, for a person at a terminal. Values with other than plain characters are quoted."""

    def format(self, record: logging.LogRecord) -> str:
        line = _line(record)
        head = [str(line.pop(name)) for name in ("time", "level", "logger")]
        event = _printable(str(line.pop("event")))
        return " ".join([*head, event, *(f"{name}={_plain(value)}" for name, value in line.items())])


def _line(record: logging.LogRecord) -> dict[str, Field]:
    moment = dt.datetime.fromtimestamp(record.created, dt.UTC)
    line: dict[str, Field] = {
        "time": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": record.getMessage(),
    }
    traceparent = trace.current.get()
    if traceparent is not None:
        line["traceId"] = trace.trace_id(traceparent)
    line |= {name: value for name, value in _bound.get().items() if value is not None}
    line |= getattr(record, "event_fields", {})
    if record.exc_info and record.exc_info[1] is not None:
        line["exception"] = describe(record.exc_info[1])
    return line


def describe(error: BaseException) -> str:
    """Classes and places of an exception and its causes, the last call first; texts only where they cannot quote a row."""
    parts: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(parts) < _FRAMES:
        parts.append(_describe_one(seen))
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)
    return " because of ".join(parts)


def _describe_one(error: BaseException) -> str:
    name = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    text = f"({error})" if isinstance(error, _SPEAKING) else ""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = [f"{frame.filename.rsplit('/', 2)[-1]}:{frame.lineno} {frame.name}" for frame in reversed(frames)]
    return f"{name}{text}" + (f" at {' < '.join(places)}" if places else "")


def _plain(value: Field) -> str:
    text = str(value)
    if text.isprintable() and text and not set(text) & set(' "='):
        return text
    return json.dumps(text, ensure_ascii=False)


def _printable(text: str) -> str:
    """The text on one line: a control character, line breaks first of all, becomes its escape."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
