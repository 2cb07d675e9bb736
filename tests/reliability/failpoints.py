"""Where a fault strikes: at the n-th line of the product's own code, or in the n-th call of one of its seams."""

import errno
import io
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import psycopg
import pymysql
import redis
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

import exports
from exports.errors import StoreUnavailable
from exports.storage.filesystem import FolderStore

PRODUCT = str(Path(exports.__file__).parent) + "/"
_PURE = (
    *("telemetry/", "formats/", "conf.py", "contracts.py", "state/keys.py", "state/scripts.py", "state/replies.py"),
    *("kinds/orders/cells.py", "kinds/orders/statements.py", "pipeline/specification.py", "storage/recipe.py"),
)
UNTRACED = tuple(PRODUCT + name for name in _PURE)
"""Code without any effect outside the process: a kill in it is a kill before the next line that has one."""

Line = tuple[str, int, str]
"""File below `exports/`, line number, function (and the script that it runs)."""
_RUN = "_run"
_SENDS = "_registered"
_COMMITS = {f"{_RUN} {name}" for name in ("write_plan", "commit_page", "finish_shard", "write_recipe", "publish_task")}


@contextmanager
def lines(each: Callable[[int, FrameType], None]) -> Iterator[None]:
    """Calls `each` with the number of a line (from 1) before the main thread performs it."""
    count = 0

    def on_line(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if event == "line":
            count += 1
            each(count, frame)
        return on_line

    traced: dict[CodeType, bool] = {}

    def on_call(frame: FrameType, _event: str, _: object) -> Any:
        code = frame.f_code
        if code not in traced:
            traced[code] = code.co_filename.startswith(PRODUCT) and not code.co_filename.startswith(UNTRACED)
        return on_line if traced[code] else None

    def unseen(call: Callable[..., Any]) -> Callable[..., Any]:
        """A call of the client is half of all that there is to trace, and none of it the product's."""

        def perform(*args: Any, **kwargs: Any) -> Any:
            if sys.gettrace() is None:  # of another thread
                return call(*args, **kwargs)
            sys.settrace(None)
            try:
                return call(*args, **kwargs)
            finally:
                sys.settrace(on_call)

        return perform

    with (
        mock.patch.object(redis.Redis, "execute_command", unseen(redis.Redis.execute_command)),
        mock.patch.object(redis.client.Pipeline, "execute", unseen(redis.client.Pipeline.execute)),
    ):
        sys.settrace(on_call)
        try:
            yield
        finally:
            sys.settrace(None)


def place(frame: FrameType) -> Line:
    code = frame.f_code
    function = f"{_RUN} {frame.f_locals['name']}" if code.co_name == _RUN else code.co_name
    return code.co_filename.removeprefix(PRODUCT), frame.f_lineno, function


def commits(line: Line) -> bool:
    """Whether the line belongs to the call of a script that makes work count."""
    return line[2] in _COMMITS


def sends(line: Line) -> bool:
    """Whether a script goes out right after the line."""
    return line[2] == _SENDS


# --- the n-th call -------------------------------------------------------------------------------


class Mode(StrEnum):
    ERROR = "error"
    HANG = "hang"
    LOST = "lost"  # done, but the reply is lost
    FULL = "full"  # only the file system


class Calls:
    """Counts the calls of one seam. at: the one that fails, 0 for none. lasting: all later ones fail too."""

    def __init__(self, *, at: int = 0, mode: Mode = Mode.ERROR, lasting: bool = False) -> None:
        self.count = 0
        self.at = at
        self.mode = mode
        self.lasting = lasting

    def hits(self) -> bool:
        self.count += 1
        return self.at > 0 and (self.count == self.at or (self.lasting and self.count > self.at))

    def perform(self, call: Callable[[], Any], failure: Callable[[], Exception]) -> Any:
        if not self.hits():
            return call()
        if self.mode is Mode.LOST:
            call()
        elif self.mode is Mode.HANG:
            time.sleep(0.02)
        raise failure()


@contextmanager
def redis_calls(calls: Calls) -> Iterator[None]:
    """Of the state and of the broker: what goes out on a connection, or (LOST) the answer that comes in."""
    send = redis.connection.AbstractConnection.send_packed_command
    read = redis.connection.AbstractConnection.read_response

    def failing_send(self: Any, *args: Any, **kwargs: Any) -> Any:
        if calls.mode is not Mode.LOST and calls.hits():
            self.disconnect()
            if calls.mode is Mode.HANG:
                time.sleep(0.02)
                raise redis.TimeoutError("hangs")
            raise redis.ConnectionError("cut")
        return send(self, *args, **kwargs)

    def failing_read(self: Any, *args: Any, **kwargs: Any) -> Any:
        answer = read(self, *args, **kwargs)
        if calls.mode is Mode.LOST and calls.hits():
            self.disconnect()
            raise redis.ConnectionError("reply lost")
        return answer

    with (
        mock.patch.object(redis.connection.AbstractConnection, "send_packed_command", failing_send),
        mock.patch.object(redis.connection.AbstractConnection, "read_response", failing_read),
    ):
        yield


def _sqlite_error(hangs: bool) -> Exception:
    error = sqlite3.OperationalError("out of order")
    error.sqlite_errorcode = sqlite3.SQLITE_INTERRUPT if hangs else sqlite3.SQLITE_IOERR
    return error


_DATABASE_ERRORS: dict[str, Callable[[bool], Exception]] = {
    "sqlite": _sqlite_error,
    "postgresql": lambda hangs: (psycopg.errors.QueryCanceled if hangs else psycopg.errors.AdminShutdown)(
        "out of order"
    ),
    "mysql": lambda hangs: pymysql.err.OperationalError(3024 if hangs else 2013, "out of order"),
}
"""Whether it hangs → what the driver raises."""


@contextmanager
def database_calls(calls: Calls) -> Iterator[None]:
    """Connecting, and every statement."""
    execute, connect = CursorWrapper.execute, BaseDatabaseWrapper.connect

    def failure(vendor: str) -> Exception:
        cause = _DATABASE_ERRORS[vendor](calls.mode is Mode.HANG)
        error = OperationalError(*cause.args)
        error.__cause__ = cause
        return error

    def failing_execute(self: Any, sql: str, params: Any = None) -> Any:
        return calls.perform(lambda: execute(self, sql, params), lambda: failure(self.db.vendor))

    def failing_connect(self: Any) -> Any:
        return calls.perform(lambda: connect(self), lambda: failure(self.vendor))

    with (
        mock.patch.object(CursorWrapper, "execute", failing_execute),
        mock.patch.object(BaseDatabaseWrapper, "connect", failing_connect),
    ):
        yield


_OS_CALLS = (
    "open",
    "write",
    "ftruncate",
    "fsync",
    "fdatasync",
    "mkdir",
    "rename",
    "unlink",
    "rmdir",
    "stat",
    "scandir",
)


@contextmanager
def file_calls(calls: Calls) -> Iterator[None]:
    """Every call of the operating system that spool and store make. One that hangs is only slow."""

    def failing(call: Callable[..., Any]) -> Callable[..., Any]:
        def perform(*args: Any, **kwargs: Any) -> Any:
            if not _from_storage(sys._getframe(1)):
                return call(*args, **kwargs)
            if calls.mode is not Mode.HANG:
                return calls.perform(lambda: call(*args, **kwargs), lambda: _disk_error(calls.mode))
            if calls.hits():
                time.sleep(0.02)
            return call(*args, **kwargs)

        return perform

    class FailingFile(io.FileIO):
        write = failing(io.FileIO.write)
        read = failing(io.FileIO.read)

    real_open = io.open

    def failing_open(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **kwargs: Any) -> Any:
        raw = "b" in mode and buffering == 0
        return FailingFile(file, mode.replace("b", "")) if raw else real_open(file, mode, buffering, *args, **kwargs)

    with ExitStack() as stack:
        for name in _OS_CALLS:
            stack.enter_context(mock.patch.object(os, name, failing(getattr(os, name))))
        stack.enter_context(mock.patch.object(io, "open", failing(failing_open)))
        stack.enter_context(mock.patch.object(shutil, "rmtree", failing(shutil.rmtree)))
        yield


def _disk_error(mode: Mode) -> OSError:
    number = errno.ENOSPC if mode is Mode.FULL else errno.EIO
    return OSError(number, os.strerror(number))


def _from_storage(frame: FrameType | None) -> bool:
    """Whether `exports.storage` made this call, at most a few calls up (pathlib, shutil)."""
    for _ in range(6):
        if frame is None:
            return False
        if frame.f_code.co_filename.startswith(f"{PRODUCT}storage/"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def store_calls(calls: Calls) -> Iterator[None]:
    """Every method of the store of artifacts."""

    def failing(call: Callable[..., Any]) -> Callable[..., Any]:
        def perform(*args: Any, **kwargs: Any) -> Any:
            return calls.perform(lambda: call(*args, **kwargs), lambda: StoreUnavailable("out of order"))

        return perform

    with ExitStack() as stack:
        for name in ("put", "size", "delete", "task_ids", "read_identity", "write_identity"):
            stack.enter_context(mock.patch.object(FolderStore, name, failing(getattr(FolderStore, name))))
        yield


SEAMS = {"redis": redis_calls, "database": database_calls, "files": file_calls, "store": store_calls}
