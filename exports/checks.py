"""System checks: what would make the service unsafe or useless is refused at start, by id."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import identify_hasher
from django.core.checks import CheckMessage, Error, Tags, register

from exports import kinds
from exports.conf import Conf, load
from exports.contracts import Right
from exports.errors import SettingInvalid
from exports.webhooks import endpoints

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII | re.IGNORECASE)
_RIGHTS = frozenset(right.value for right in Right)
_SECRET_MIN = 32
"""Characters: 128 random bits in hexadecimal."""

_WEAK_TOKENS = ("", "admin", "changeme", "demo", "exports", "password", "secret", "test", "token", "123456", "12345678")
_WEAK_DIGESTS = frozenset(hashlib.sha256(token.encode()).hexdigest() for token in _WEAK_TOKENS)


@register(Tags.security)
def check_settings(**_: Any) -> list[CheckMessage]:
    """exports.E001: a setting is wrong; the others need settings that load."""
    try:
        conf = load(getattr(settings, "EXPORTS", {}))
    except SettingInvalid as error:
        return [Error(str(error), id="exports.E001")]
    users = getattr(settings, "EXPORTS_OPS_USERS", {})
    return [*_check_auth(conf), *_check_tokens(conf), *_check_ops_users(users), *_check_callbacks(conf)]


@register(Tags.compatibility)
def check_kinds(**_: Any) -> list[CheckMessage]:
    """exports.E007: a kind cannot be loaded. The text of the cause holds no row: nothing has been read yet."""
    try:
        kinds.names()
    except Exception as error:  # noqa: BLE001  an adopter's module may raise anything when it is imported
        return [Error(f"kinds: {type(error).__name__}: {error}", id="exports.E007")]
    return []


def _check_auth(conf: Conf) -> Iterator[CheckMessage]:
    demo = settings.DEBUG or getattr(settings, "EXPORTS_LOOPBACK_DEMO", False)
    if conf.auth == "none" and not demo:
        yield Error("auth 'none' is for the loopback demo", hint="Use 'token' or 'gateway'.", id="exports.E002")
    if conf.auth == "gateway" and len(conf.gateway_secret) < _SECRET_MIN:
        yield Error(f"gateway_secret must have at least {_SECRET_MIN} characters", id="exports.E005")


def _check_tokens(conf: Conf) -> Iterator[CheckMessage]:
    owners: dict[str, str] = {}
    for at, entry in enumerate(conf.tokens):
        reason = _malformed(entry)
        if reason:
            yield Error(f"tokens[{at}] {reason}", id="exports.E003")
            continue
        digest = entry["sha256"].lower()
        if digest in _WEAK_DIGESTS or len(set(digest)) == 1:
            yield Error(f"tokens[{at}] is a token that anybody guesses", hint="Use 128 random bits.", id="exports.E004")
        if digest in owners:
            yield Error(f"tokens[{at}] is the token of {owners[digest]} too", id="exports.E004")
        owners[digest] = f"tokens[{at}]"


def _malformed(entry: Mapping[str, Any]) -> str:
    """What is wrong with an entry, in words; empty if nothing is."""
    if set(entry) != {"owner", "sha256", "rights"}:
        return "must have owner, sha256 and rights"
    owner, digest, rights = entry["owner"], entry["sha256"], entry["rights"]
    if not isinstance(owner, str) or not owner.strip() or not owner.isprintable():
        return "owner must be printable text"
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        return "sha256 must be 64 hexadecimal digits"
    if not isinstance(rights, list | tuple) or not rights or not all(right in _RIGHTS for right in rights):
        return f"rights must be some of {', '.join(sorted(_RIGHTS))}"
    return ""


def _check_ops_users(users: Mapping[str, Any]) -> Iterator[CheckMessage]:
    for name, entry in users.items():
        if not isinstance(entry, Mapping) or set(entry) != {"password", "rights"}:
            yield Error(f"EXPORTS_OPS_USERS[{name!r}] must have password and rights", id="exports.E006")
        elif not _is_hash(entry["password"]):
            yield Error(f"EXPORTS_OPS_USERS[{name!r}] password must be a hash of Django's", id="exports.E006")
        elif not isinstance(entry["rights"], list | tuple) or not set(entry["rights"]) <= {
            Right.OPS_READ,
            Right.OPS_ACT,
        }:
            yield Error(f"EXPORTS_OPS_USERS[{name!r}] rights must be ops.read and ops.act", id="exports.E006")


def _check_callbacks(conf: Conf) -> Iterator[CheckMessage]:
    try:
        endpoints.read(conf)
    except SettingInvalid as error:
        yield Error(str(error), id="exports.E008")


def _is_hash(password: object) -> bool:
    try:
        return isinstance(password, str) and bool(identify_hasher(password))
    except ValueError:
        return False
