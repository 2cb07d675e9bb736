"""Diagnosis: is everything that the service needs there, and fit? Reads, and writes one empty probe to each place."""

import hashlib
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.conf import settings
from django.core import checks

from exports import clocks, kinds, storage
from exports.conf import conf
from exports.errors import ExportError, StateUnavailable
from exports.pipeline import hints, identity
from exports.pipeline.remedies import REMEDIES
from exports.pipeline.workers import host_of
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
    """FAIL: exports fail, are lost or are wrong. WARN: they are slow, or somebody should know.

    code: of the error that kept this from being looked at, if it has a remedy of its own.
    """

    level: Level
    name: str
    text: str
    code: str = ""

    @property
    def remedy(self) -> str:
        """What to do about it; empty where nothing is wrong. A table's findings have the kind before their name."""
        if self.level is Level.OK:
            return ""
        return REMEDIES.get(self.code) or REMEDIES.get(self.name) or REMEDIES[self.name.partition(" ")[2]]


def diagnose() -> list[Finding]:
    """All findings, in the order in which to mend what is wrong."""
    found: list[Finding] = []
    away: set[str] = set()
    for name, look in _LOOKS.items():
        found += _guarded(name, look, away)
    return found


def _guarded(name: str, look: Callable[[], Iterator[Finding]], away: set[str]) -> list[Finding]:
    """away: codes of what did not answer an earlier look, which fails once for all of them; grows."""
    try:
        return list(look())
    except ExportError as error:
        if error.code in away:
            return [Finding(Level.WARN, name, f"not checked: {error.code}, as above", code="not_checked")]
        if error.retryable:
            away.add(error.code)
        told = str(error) if error.code in str(error) else f"{error.code}: {error}"
        cause = f" ({_named(error.__cause__)})" if error.__cause__ else ""
        return [Finding(Level.FAIL, name, told + cause, code=error.code)]
    except Exception as error:  # noqa: BLE001  # whatever is broken is the finding
        return [Finding(Level.FAIL, name, _named(error))]


def _named(error: BaseException) -> str:
    """Its class; an error of the disk says which path, others may quote a row."""
    return f"{type(error).__name__}: {error}" if isinstance(error, OSError) else type(error).__name__


def _settings() -> Iterator[Finding]:
    serious = [message for message in checks.run_checks() if message.is_serious()]
    for message in serious:
        yield Finding(Level.FAIL, "settings", f"{message.id} {message.msg}")
    if not serious:
        yield Finding(Level.OK, "settings", "all loaded, system checks passed")


def _debug() -> Iterator[Finding]:
    if settings.DEBUG:
        yield Finding(Level.FAIL, "debug", "DEBUG is on: an error page shows code and settings to whoever meets it")


def _access() -> Iterator[Finding]:
    if conf().auth == "none":
        demo = getattr(settings, "EXPORTS_LOOPBACK_DEMO", False)
        level = Level.WARN if demo else Level.FAIL
        yield Finding(level, "access", "auth is `none`: whoever reaches the service may export everything")
    elif conf().auth == "token" and not conf().tokens:
        yield Finding(Level.WARN, "access", "auth is `token`, and there is no token: nobody can submit")
    else:
        yield Finding(Level.OK, "access", f"by {conf().auth}")


def _clock() -> Iterator[Finding]:
    """Leases and expiries go by the clock of Redis, links and logs by that of each host."""
    wrong = clocks.disagreement("the clock of Redis", store().now_ms() / 1000)
    if wrong:
        yield Finding(Level.WARN, "clock", wrong)
    else:
        yield Finding(Level.OK, "clock", "Redis agrees with this host")


def _redis_databases() -> Iterator[Finding]:
    """The start refuses equal addresses; two names of one host are found out here, of the servers that answer."""
    others = {
        "broker": getattr(settings, "EXPORTS_BROKER_URL", ""),
        "cache": settings.CACHES["default"].get("LOCATION", ""),
    }
    shared: list[str] = []
    apart = ["state"]
    for name, url in others.items():
        with suppress(StateUnavailable):
            if url:
                (shared if store().is_at(url) else apart).append(name)
    if shared:
        told = f"the state shares its database with {' and '.join(shared)}"
        yield Finding(Level.FAIL, "redis databases", f"{told}: what empties one of them loses all tasks")
    elif len(apart) > 1:
        yield Finding(Level.OK, "redis databases", f"{', '.join(apart[:-1])} and {apart[-1]} are apart")


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


def _spool_shared() -> Iterator[Finding]:
    """Each worker tells with its sign of life which spool it works on."""
    here = storage.spool().id
    signs = {name: sign for name, sign in store().workers().items() if sign.group}
    elsewhere = sorted({host_of(name) for name, sign in signs.items() if sign.spool != here})
    if elsewhere:
        told = f"workers on {', '.join(elsewhere)} have another spool: they help only with the tasks planned on it"
        yield Finding(Level.WARN, "spool shared", told)
    elif signs:
        yield Finding(Level.OK, "spool shared", "all workers that are alive have this one")


def _store() -> Iterator[Finding]:
    storage.artifacts().read_identity()  # first: some stores make a bucket that is missing when it is written to
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
    "debug": _debug,
    "access": _access,
    "redis": _redis,
    "redis databases": _redis_databases,
    "clock": _clock,
    "broker": _broker,
    "workers": _workers,
    "callbacks": _callbacks,
    "spool": _spool,
    "spool shared": _spool_shared,
    "store": _store,
    "identity": _identity,
    "orders table": _tables,
    "orders grants": _grants,
}
