"""Who asks. Identity travels in headers, never in the frozen body.

`token`: `Authorization: Bearer`, compared by SHA-256. `gateway`: headers that a trusted gateway sets, taken only
beside its secret. `none`: this machine only, for the demo.
"""

import hashlib
import ipaddress
from collections.abc import Iterable
from hmac import compare_digest

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from exports.api.problems import LoopbackOnly
from exports.conf import conf
from exports.contracts import Principal, Right

DEMO_OWNER = "demo"
REALM = 'realm="exports"'


class Identity(BaseAuthentication):
    """The principal of a request, by the mode in force."""

    def authenticate(self, request: Request) -> tuple[Principal, object] | None:
        mode = {"token": _by_token, "gateway": _by_gateway, "none": _by_loopback}[conf().auth]
        principal = mode(request)
        return (principal, None) if principal else None

    def authenticate_header(self, request: Request) -> str:
        """Value of `WWW-Authenticate`; without one the framework would answer 403."""
        return f"{'Gateway' if conf().auth == 'gateway' else 'Bearer'} {REALM}"


def rights_in_force(owner: str) -> frozenset[Right] | None:
    """What an owner may do now, as far as this side knows: None where only the gateway does.

    An owner without a token has no rights.
    """
    if conf().auth != "token":
        return None
    return frozenset().union(*(known_rights(entry["rights"]) for entry in conf().tokens if entry["owner"] == owner))


def known_rights(names: Iterable[str]) -> frozenset[Right]:
    """Rights by name; names that mean nothing here are left out."""
    known = set(names)
    return frozenset(right for right in Right if right in known)


def _by_token(request: Request) -> Principal | None:
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    digest = hashlib.sha256(token.strip().encode()).hexdigest()
    # Every entry is compared, also after a hit: the time says nothing about which token matched.
    hits = [entry for entry in conf().tokens if compare_digest(str(entry["sha256"]).lower(), digest)]
    if not hits:
        raise AuthenticationFailed
    return Principal(hits[0]["owner"], known_rights(hits[0]["rights"]))


def _by_gateway(request: Request) -> Principal | None:
    secret = request.META.get("HTTP_X_GATEWAY_SECRET")
    if secret is None:
        return None
    known = conf().gateway_secret
    if not known or not compare_digest(known.encode(), secret.encode()):
        raise AuthenticationFailed
    names = request.META.get("HTTP_X_EXPORT_RIGHTS", "").replace(",", " ").split()
    return Principal(_owner_header(request), known_rights(names))


def _owner_header(request: Request) -> str:
    """WSGI hands header bytes over as Latin-1 (PEP 3333); gateways send names in UTF-8."""
    try:
        owner: str = request.META.get("HTTP_X_EXPORT_OWNER", "").encode("latin-1").decode().strip()
    except UnicodeError as error:
        raise AuthenticationFailed from error
    if not 1 <= len(owner) <= 255 or not owner.isprintable():
        raise AuthenticationFailed
    return owner


def _by_loopback(request: Request) -> Principal:
    """A proxy on this machine would make the whole world local, so a proxied request is refused."""
    proxied = "HTTP_X_FORWARDED_FOR" in request.META or "HTTP_FORWARDED" in request.META
    if proxied or not _is_loopback(request.META.get("REMOTE_ADDR", "")):
        raise LoopbackOnly
    return Principal(DEMO_OWNER, frozenset(Right))


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
