"""Who gets callbacks: the endpoints that the operator has set, checked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from exports.callbacks import CallbackEvent
from exports.conf import Conf, conf
from exports.errors import SettingInvalid
from exports.webhooks import addresses, signing

EVERYONE = "*"

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_PLAIN = re.compile(r"[!-\[\]-~]{1,2000}", re.ASCII)
"""Printable ASCII without space and backslash: nothing that two readers of a URL take differently."""
_EVENTS = {event.type: event for event in CallbackEvent}
_FIELDS = {"id", "owner", "url", "events", "secrets"}
_SECRETS_MAX = 4


@dataclass(frozen=True, slots=True)
class Endpoint:
    """owner: whose tasks, or `*` for all. keys: of its secrets; the first one makes `X-Signature`."""

    id: str
    owner: str
    url: str = field(repr=False)
    events: frozenset[CallbackEvent]
    keys: tuple[bytes, ...] = field(repr=False)

    def wants(self, event: CallbackEvent, *, owner: str) -> bool:
        return event in self.events and self.owner in (EVERYONE, owner)


def endpoints() -> tuple[Endpoint, ...]:
    """Those of the settings in force. Raises: SettingInvalid."""
    return read(conf())


def read(settings: Conf) -> tuple[Endpoint, ...]:
    """Raises: SettingInvalid that names entry and field, and shows neither URL nor secret."""
    found: dict[str, Endpoint] = {}
    for at, entry in enumerate(settings.callbacks):
        endpoint = _endpoint(f"callbacks[{at}]", entry, settings)
        if endpoint.id in found:
            raise SettingInvalid(f"callbacks[{at}].id", "is the id of another endpoint too")
        found[endpoint.id] = endpoint
    return tuple(found.values())


def _endpoint(name: str, entry: Mapping[str, Any], settings: Conf) -> Endpoint:
    for wrong in sorted(_FIELDS ^ set(entry)):
        raise SettingInvalid(f"{name}.{wrong}", "is missing" if wrong in _FIELDS else "is not a field of an endpoint")
    if not isinstance(entry["id"], str) or not _ID.fullmatch(entry["id"]):
        raise SettingInvalid(f"{name}.id", "must be 1 to 64 letters, digits, hyphens and underscores")
    owner = entry["owner"]
    if not isinstance(owner, str) or not owner.strip() or not owner.isprintable():
        raise SettingInvalid(f"{name}.owner", "must be an owner, or * for all")
    return Endpoint(
        id=entry["id"],
        owner=owner,
        url=_url(f"{name}.url", entry["url"], settings),
        events=_events(f"{name}.events", entry["events"]),
        keys=_keys(f"{name}.secrets", entry["secrets"]),
    )


def _url(name: str, url: object, settings: Conf) -> str:
    if not isinstance(url, str) or not _PLAIN.fullmatch(url):
        raise SettingInvalid(name, "must be a URL of plain ASCII characters")
    try:
        parts = urlsplit(url)
        right = parts.port != 0 and bool(parts.hostname)
    except ValueError:
        right = False
    if not right:
        raise SettingInvalid(name, "must have a host, and a right port if any")
    reason = _url_refusal(urlsplit(url), settings)
    if reason:
        raise SettingInvalid(name, reason)
    return url


def _url_refusal(parts: SplitResult, settings: Conf) -> str:
    if parts.scheme != "https" and not (parts.scheme == "http" and settings.callback_plain_http):
        return "must be https"
    if "@" in parts.netloc:
        return "must not hold a user or password"
    if parts.fragment:
        return "must not have a fragment"
    if addresses.is_forbidden_literal(parts.hostname or "", private=settings.callback_private_addresses):
        return "must not lead to a private or local address"
    return ""


def _events(name: str, events: object) -> frozenset[CallbackEvent]:
    if not isinstance(events, list | tuple) or not events or not all(event in _EVENTS for event in events):
        raise SettingInvalid(name, f"must be some of {', '.join(_EVENTS)}")
    return frozenset(_EVENTS[event] for event in events)


def _keys(name: str, secrets: object) -> tuple[bytes, ...]:
    if not isinstance(secrets, list | tuple) or not 1 <= len(secrets) <= _SECRETS_MAX:
        raise SettingInvalid(name, f"must be a list of 1 to {_SECRETS_MAX} secrets")
    try:
        return tuple(signing.key_of(secret) for secret in secrets)
    except ValueError as wrong:
        raise SettingInvalid(name, str(wrong)) from None
