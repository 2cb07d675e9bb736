"""Diagnosis: is everything that the service needs there, and fit? Reads, and writes one empty probe to each place."""

import hashlib
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.core import checks

from exports import kinds, storage
from exports.errors import ExportError
from exports.pipeline import hints, identity
from exports.state.store import store
from exports.storage.base import NoRecord, Source
from exports.webhooks.endpoints import endpoints

_DAY_MS = 86_400_000


class Level(StrEnum):
    OK = "OK"
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """FAIL: exports fail, are lost or are wrong. WARN: they are slow, or somebody should know."""

    level: Level
    name: str
    text: str


def diagnose() -> list[Finding]:
    """All findings, in the order in which to mend what is wrong."""
    found: list[Finding] = []
    for name, look in _LOOKS.items():
        found += _guarded(name, look)
    return found


def _guarded(name: str, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    try:
        return list(look())
    except ExportError as error:
        cause = f" ({type(error.__cause__).__name__})" if error.__cause__ else ""
        return [Finding(Level.FAIL, name, f"{error.code}: {error}{cause}")]
    except Exception as error:  # noqa: BLE001  # whatever is broken is the finding
        return [Finding(Level.FAIL, name, type(error).__name__)]


def _settings() -> Iterator[Finding]:
    serious = [message for message in checks.run_checks() if message.is_serious()]
    for message in serious:
        yield Finding(Level.FAIL, "settings", f"{message.id} {message.msg}")
    if not serious:
        yield Finding(Level.OK, "settings", "all loaded, system checks passed")


def _redis() -> Iterator[Finding]:
    problems = store().server_problems()
    for problem in problems:
        yield Finding(Level.FAIL, "redis", problem)
    if not problems:
        yield Finding(Level.OK, "redis", "answers; noeviction, append-only file, no cluster")


def _broker() -> Iterator[Finding]:
    waiting = sum(hints.count_waiting({sign.spool for sign in store().workers().values()}).values())
    yield Finding(Level.OK, "broker", f"answers; {waiting} hints wait")


def _workers() -> Iterator[Finding]:
    groups = sorted(sign.group for sign in store().workers().values() if sign.group)
    counts = ", ".join(f"{group} {groups.count(group)}" for group in dict.fromkeys(groups))
    if counts:
        yield Finding(Level.OK, "workers", counts)
    else:
        yield Finding(Level.WARN, "workers", "none gave a sign of life in the last 15 s: tasks stay queued")


def _callbacks() -> Iterator[Finding]:
    """Only where there are endpoints."""
    count = len(endpoints())
    if not count:
        return
    told = f"{count} endpoint{'s' * (count > 1)}"
    failed = len(store().failed_callbacks(store().now_ms() - _DAY_MS))
    if not any(sign.group == "notify" for sign in store().workers().values()):
        yield Finding(Level.WARN, "callbacks", f"{told}, but no worker of the group notify")
    elif failed:
        what = "callback has" if failed == 1 else "callbacks have"
        yield Finding(Level.WARN, "callbacks", f"{told}; {failed} {what} failed for good in the last day")
    else:
        yield Finding(Level.OK, "callbacks", told)


def _spool() -> Iterator[Finding]:
    probe = f"doctor-{uuid.uuid4().hex}"
    storage.spool().create(probe)
    storage.spool().remove(probe)
    if storage.spool().has_room():
        yield Finding(Level.OK, "spool", "writable")
    else:
        yield Finding(Level.WARN, "spool", "writable, but less than the reserve is free")


def _store() -> Iterator[Finding]:
    probe = f"doctor-{uuid.uuid4().hex}"
    nothing = Source(0, hashlib.sha256().hexdigest(), lambda _offset, _length: iter(()))
    storage.artifacts().put(f"{probe}/probe", nothing, record=NoRecord())
    storage.artifacts().delete(probe)
    yield Finding(Level.OK, "store", "writable")


def _identity() -> Iterator[Finding]:
    reason = identity.settle()
    if reason:
        yield Finding(Level.WARN, "identity", f"{reason}; export_purge will remove nothing")
    else:
        yield Finding(Level.OK, "identity", "spool, store and Redis belong together")


def _tables() -> Iterator[Finding]:
    """Kinds that can tell: those of a table."""
    for name in kinds.names():
        kind: Any = kinds.get(name)
        if hasattr(kind, "table_findings"):
            for found in kind.table_findings():
                bad = Level.FAIL if found.grave else Level.WARN
                yield Finding(Level.OK if found.fit else bad, f"{name} {found.name}", found.text)


def _grants() -> Iterator[Finding]:
    for name in kinds.names():
        kind: Any = kinds.get(name)
        if not hasattr(kind, "write_privileges"):
            continue
        more = kind.write_privileges()
        if more:
            yield Finding(Level.WARN, f"{name} grants", f"the role may do more than read: {', '.join(more)}")
        else:
            yield Finding(Level.OK, f"{name} grants", "the role may only read")


_LOOKS: dict[str, Callable[[], Iterator[Finding]]] = {
    "settings": _settings,
    "redis": _redis,
    "broker": _broker,
    "workers": _workers,
    "callbacks": _callbacks,
    "spool": _spool,
    "store": _store,
    "identity": _identity,
    "orders table": _tables,
    "orders grants": _grants,
}
