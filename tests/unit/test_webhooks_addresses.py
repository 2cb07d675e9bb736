"""No spelling of an inner address is reached: a listener on this machine sees no connection."""

import socket
import threading
from collections.abc import Iterator

import pytest

from exports.callbacks import CallbackEvent, CallbackResult
from exports.webhooks import addresses, delivery
from exports.webhooks.addresses import AddressBlocked
from exports.webhooks.endpoints import Endpoint

INSIDE = [
    # this machine
    "127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "0.0.0.0", "0", "2130706433", "017700000001", "0x7f000001", "0x7f.1",
    "0177.0.0.1", "0177.0.0.01", "0x7f.0x0.0x0.0x1", "127.0.0.1.", "localhost", "LOCALHOST", "localhost.", "①②⑦.⓪.⓪.①", "１２７.０.０.１",
    "127。0。0。1", "::1", "0:0:0:0:0:0:0:1", "0000::0001", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:0:127.0.0.1",
    "::127.0.0.1",
    # private networks
    "10.0.0.5", "10.255.255.255", "167772165", "0xa000005", "172.16.0.9", "172.31.255.255", "192.168.1.1", "3232235777", "100.64.0.1",
    "fc00::1", "fd12:3456::1", "fec0::1", "::ffff:10.0.0.5",
    # link-local and metadata
    "169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "fe80::1", "fe80::1%lo", "::ffff:169.254.169.254",
    "fd00:ec2::254", "100.100.100.200", "168.63.129.16",
    # tunnels and translations
    "64:ff9b::7f00:1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:5", "2002:7f00:1::", "2002:a00:5::1", "2001::1",
    "2001:0:7f00:1::", "192.88.99.1",
    # for nobody
    "224.0.0.1", "239.255.255.250", "ff02::1", "ff0e::1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.51.100.7", "203.0.113.7", "198.18.0.1",
    "192.0.0.192", "2001:db8::1", "3fff::1", "100::1",
]  # fmt: skip
OUTSIDE = [
    "1.1.1.1",
    "93.184.215.14",
    "172.15.255.255",
    "172.32.0.1",
    "192.167.255.255",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450::1",
]


def endpoint(host: str, port: int) -> Endpoint:
    shown = f"[{host}]" if ":" in host else host
    return Endpoint("e", "*", f"http://{shown}:{port}/x", frozenset(CallbackEvent), (b"k" * 32,))


@pytest.fixture
def listener() -> Iterator[tuple[int, list[object]]]:
    """The port of a socket on every address of this machine, and the connections that came."""
    seen: list[object] = []
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        server.settimeout(0.05)
        over = threading.Event()

        def accept() -> None:
            while not over.is_set():
                try:
                    connection, peer = server.accept()
                except TimeoutError:
                    continue
                seen.append(peer)
                connection.close()

        thread = threading.Thread(target=accept)
        thread.start()
        yield server.getsockname()[1], seen
        over.set()
        thread.join()


def send(
    host: str, port: int, *, look_up: addresses.LookUp = addresses.look_up, private: bool = False
) -> CallbackResult:
    outcome = delivery.send(endpoint(host, port), b"{}", message_id="m", timeout_s=2, private=private, look_up=look_up)
    return outcome.result


def test_the_list_is_long_enough() -> None:
    assert len(set(INSIDE)) >= 60


def test_no_spelling_of_an_inner_address_is_reached(listener: tuple[int, list[object]]) -> None:
    port, seen = listener
    results = {host: send(host, port) for host in INSIDE}
    assert set(results.values()) <= {CallbackResult.BLOCKED, CallbackResult.UNREACHABLE}, results
    assert seen == []
    # The listener is one: a sender that may go inside reaches it.
    assert send("127.0.0.1", port, private=True) is not CallbackResult.BLOCKED
    assert len(seen) == 1


@pytest.mark.parametrize("host", INSIDE)
def test_an_inner_address_that_a_name_resolves_to_is_blocked(host: str) -> None:
    try:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(host, 80, flags=socket.AI_NUMERICHOST)]
    except (OSError, UnicodeError):
        found = [host]
    with pytest.raises(AddressBlocked):
        addresses.resolve("hook.test", 443, private=False, look_up=lambda _host, _port: found)


@pytest.mark.parametrize("address", OUTSIDE)
def test_a_public_address_is_allowed(address: str) -> None:
    assert addresses.resolve("hook.test", 443, private=False, look_up=lambda _host, _port: [address]) == [address]


def test_one_inner_address_among_public_ones_blocks_all(listener: tuple[int, list[object]]) -> None:
    port, seen = listener
    assert send("hook.test", port, look_up=lambda _host, _port: ["1.1.1.1", "127.0.0.1"]) is CallbackResult.BLOCKED
    assert seen == []


def test_a_name_that_changes_its_address_is_looked_up_once(
    listener: tuple[int, list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, seen = listener
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["192.0.2.99"] if len(asked) == 1 else ["127.0.0.1"]

    connected: list[object] = []

    def connect(address: object, **_: object) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(addresses, "is_allowed", lambda address, private: address == "192.0.2.99")
    monkeypatch.setattr(socket, "create_connection", connect)
    assert send("hook.test", port, look_up=rebinding) is CallbackResult.UNREACHABLE
    assert (asked, connected, seen) == (["hook.test"], [("192.0.2.99", port)], [])


@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "0.0.0.0", "224.0.0.1", "fe80::1%lo", "::ffff:127.0.0.1"],
)
def test_private_networks_opened_by_the_operator_leave_metadata_and_the_rest_closed(host: str) -> None:
    with pytest.raises(AddressBlocked):
        addresses.resolve("hook.test", 443, private=True, look_up=lambda _host, _port: [host])
    assert addresses.is_allowed("10.0.0.5", private=True)
    assert addresses.is_allowed("::1", private=True)
