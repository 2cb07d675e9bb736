"""Where a callback may go: public addresses only, checked after the one look-up whose addresses are then used.

The networks are listed here, because `ipaddress.is_global` differs between releases of Python and takes addresses
for public that lead to inner ones (NAT64, 6to4, multicast).
Source: IANA special-purpose address registries for IPv4 and IPv6 (RFC 6890 and its updates).
"""

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from exports.errors import ExportError

Address = IPv4Address | IPv6Address
LookUp = Callable[[str, int], Sequence[str]]
"""(host, port) → addresses. Raises: OSError."""

_SPECIAL_V4 = tuple(
    IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
        *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
    )
)
_UNICAST_V6 = IPv6Network("2000::/3")
"""All that is given out as public; IPv4-mapped, NAT64, local, site and multicast addresses lie outside."""
_SPECIAL_V6 = tuple(IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
"""Teredo and other tunnels, documentation, 6to4."""
_PRIVATE_V4 = tuple(
    IPv4Network(text) for text in ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
)
_PRIVATE_V6 = tuple(IPv6Network(text) for text in ("::1/128", "fc00::/7"))
_METADATA = frozenset(
    ip_address(text)
    for text in ("169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254")
)
"""Services of clouds that hand out credentials; one of them has a public address."""


class AddressBlocked(ExportError):
    """An address that callbacks must not reach."""

    code = "address_blocked"


def look_up(host: str, port: int) -> list[str]:
    """The addresses of a host, in the resolver's order; the resolver's own limits bound the time."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def resolve(host: str, port: int, *, private: bool, look_up: LookUp = look_up) -> list[str]:
    """All addresses of a host after one look-up; one that is not allowed refuses them all.

    private: also addresses of private networks and of this machine. Raises: AddressBlocked, OSError.
    """
    found = list(look_up(host, port))
    for address in found:
        if not is_allowed(address, private=private):
            raise AddressBlocked("the host has an address that callbacks must not reach")
    return found


def is_forbidden_literal(host: str, *, private: bool) -> bool:
    """Whether a host is an address, in any spelling that the system reads, and one that is not allowed."""
    plain = host.rstrip(".").lower()
    try:
        found = socket.getaddrinfo(plain, None, flags=socket.AI_NUMERICHOST)
    except OSError:
        return not private and (plain == "localhost" or plain.endswith(".localhost"))
    return not all(is_allowed(str(entry[4][0]), private=private) for entry in found)


def is_allowed(address: str, *, private: bool) -> bool:
    """Whether callbacks may go to an address. One with a scope (`%eth0`) is never public."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if found in _METADATA:
        return False
    return _is_public(found) or (private and _is_private(found))


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_V4)
    return address in _UNICAST_V6 and not any(address in network for network in _SPECIAL_V6)


def _is_private(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return any(address in network for network in _PRIVATE_V4)
    return any(address in network for network in _PRIVATE_V6)
