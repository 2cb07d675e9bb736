"""One delivery to a real receiver that answers, fails, hangs, drips, redirects, floods or is somebody else."""

import datetime as dt
import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from exports.callbacks import CallbackEvent, CallbackResult, Outcome
from exports.webhooks import delivery, signing
from exports.webhooks.endpoints import Endpoint
from tests.receiver import OPEN, SECRET, Receiver, receiving
from tests.services import free_port

BODY = '{"note":"/ &lt; > & \u2028 😀"}'.encode()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def send(url: str, *, timeout_s: float = 5, **options: Any) -> Outcome:
    endpoint = Endpoint("e", "*", url, frozenset(CallbackEvent), (signing.key_of(SECRET),))
    options.setdefault("private", OPEN["callback_private_addresses"])
    return delivery.send(endpoint, BODY, message_id="exp_1-1-failed-e", timeout_s=timeout_s, **options)


def test_the_bytes_that_are_signed_are_the_bytes_that_arrive(receiver: Receiver) -> None:
    outcome = send(receiver.url("/a/b?c=d"))
    [received] = receiver.received
    assert (outcome.result, outcome.status) == (CallbackResult.DELIVERED, 200)
    assert (received.path, received.body) == ("/a/b?c=d", BODY)
    assert received.headers["Content-Length"] == str(len(BODY))
    assert received.headers["Content-Type"] == "application/json"
    assert received.headers["Host"] == f"127.0.0.1:{receiver.port}"
    assert Webhook(SECRET).verify(received.body, received.headers) == json.loads(BODY)


@pytest.mark.parametrize(
    ("status", "result"),
    [(200, "delivered"), (204, "delivered"), (299, "delivered"), (300, "refused"), (304, "refused"), (400, "refused"), (404, "refused"), (410, "gone"), (500, "refused")],
)  # fmt: skip
def test_only_2xx_is_delivered(receiver: Receiver, status: int, result: str) -> None:
    receiver.answers(status)
    assert (send(receiver.url()).result, send(receiver.url()).status) == (result, status)


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.answers((302, {"Location": receiver.url("/latest/")}, b""))
    assert send(receiver.url()).result is CallbackResult.REFUSED
    assert [received.path for received in receiver.received] == ["/hook"]


def test_no_proxy_of_the_environment_is_asked(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert send(receiver.url()).result is CallbackResult.DELIVERED


def test_a_receiver_that_says_nothing_is_left_in_time(receiver: Receiver) -> None:
    receiver.answers(receiver.hang)
    outcome = send(receiver.url(), timeout_s=0.5)
    assert outcome.result is CallbackResult.TIMEOUT
    assert 400 <= outcome.duration_ms < 5000


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"],
)
def test_a_receiver_that_drips_is_left_in_time(receiver: Receiver, head: bytes) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(head)
        while not receiver.over.wait(0.05):
            handler.wfile.write(head if b"100" in head else b"x")

    receiver.answers(drip)
    outcome = send(receiver.url(), timeout_s=0.6)
    assert outcome.result is CallbackResult.TIMEOUT
    assert outcome.duration_ms < 5000


def test_a_flood_is_cut(receiver: Receiver) -> None:
    sent: list[int] = []

    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 500 Oops\r\n\r\n")
        while not receiver.over.is_set():
            handler.wfile.write(b"x" * 65536)
            sent.append(65536)

    receiver.answers(flood)
    outcome = send(receiver.url())
    assert (outcome.result, outcome.status, outcome.body) == (CallbackResult.REFUSED, 500, "x" * delivery.BODY_SHOWN)
    assert sum(sent) < 20 << 20


def test_endless_headers_are_refused(receiver: Receiver) -> None:
    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not receiver.over.is_set():
            handler.wfile.write(b"X: y\r\n" * 1000)

    receiver.answers(flood)
    assert send(receiver.url()).result is CallbackResult.BROKEN


def test_what_is_not_http_is_broken(receiver: Receiver) -> None:
    receiver.answers(lambda handler: handler.wfile.write(b"220 mail.example.com ESMTP\r\n") and None)
    assert send(receiver.url()).result is CallbackResult.BROKEN
    receiver.answers(lambda handler: handler.connection.shutdown(socket.SHUT_RDWR))
    assert send(receiver.url()).result in (CallbackResult.BROKEN, CallbackResult.UNREACHABLE)


def test_nobody_there_and_no_such_name_are_unreachable() -> None:
    assert send(f"http://127.0.0.1:{free_port()}/").result is CallbackResult.UNREACHABLE

    def unknown(_host: str, _port: int) -> list[str]:
        raise socket.gaierror

    assert send("http://hook.test/", look_up=unknown).result is CallbackResult.UNREACHABLE


def test_the_next_address_is_tried_when_the_first_does_not_answer(receiver: Receiver) -> None:
    outcome = send(receiver.url(host="hook.test"), look_up=lambda _host, _port: ["127.0.0.9", "127.0.0.1"])
    assert outcome.result is CallbackResult.DELIVERED
    assert receiver.received[0].headers["Host"] == f"hook.test:{receiver.port}"


def test_an_answer_is_kept_on_one_line_and_cut(receiver: Receiver) -> None:
    receiver.answers((500, {}, "one\r\ntwo\x00\x1b[31m€|".encode() + b"\xff" + b"z" * 5000))
    shown = send(receiver.url()).body
    assert shown.startswith("one  two  [31m€|\N{REPLACEMENT CHARACTER}zzz")
    assert len(shown) == delivery.BODY_SHOWN


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("7", 7000, 7000),
        ("0", 0, 0),
        ("-5", 0, 0),
        ("soon", 0, 0),
        ("", 0, 0),
        ("9" * 400, 86_400_000, 86_400_000),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(receiver: Receiver, value: str, low: int, high: int) -> None:
    receiver.answers((429, {"Retry-After": value}, b""))
    assert low <= send(receiver.url()).retry_after_ms <= high


def test_retry_after_may_be_a_date_to_come(receiver: Receiver) -> None:
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    receiver.answers((429, {"Retry-After": f"{later:%a, %d %b %Y %H:%M:%S GMT}"}, b""))
    assert 3_000_000 <= send(receiver.url()).retry_after_ms <= 3_600_000


# --- TLS -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and certificate of hook.test in one file, made by the system's OpenSSL."""
    path = tmp_path_factory.mktemp("tls") / "hook.pem"
    command = [
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=hook.test"),
        *("-addext", "subjectAltName=DNS:hook.test", "-keyout", path, "-out", f"{path}.crt"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture
def secure(certificate: Path) -> Iterator[tuple[int, list[str | None]]]:
    """A port that speaks TLS, and the names that clients asked for."""
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        over = threading.Event()

        def serve() -> None:
            while not over.is_set():
                try:
                    plain, _ = server.accept()
                except TimeoutError:
                    continue
                plain.settimeout(5)
                try:
                    with context.wrap_socket(plain, server_side=True) as connection:
                        data = b""
                        while BODY not in data:
                            data += connection.recv(65536)
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                except OSError:
                    plain.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1], names
        over.set()
        thread.join()


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=f"{certificate}.crt")


def test_the_checked_address_is_reached_under_the_name_of_the_host(
    secure: tuple[int, list[str | None]], certificate: Path
) -> None:
    port, names = secure
    outcome = send(f"https://hook.test:{port}/", look_up=lambda _host, _port: ["127.0.0.1"], tls=trusting(certificate))
    assert (outcome.result, names) == (CallbackResult.DELIVERED, ["hook.test"])


def test_a_certificate_of_another_name_or_of_nobody_is_refused(
    secure: tuple[int, list[str | None]], certificate: Path
) -> None:
    port, _ = secure
    for url, tls in ((f"https://127.0.0.1:{port}/", trusting(certificate)), (f"https://hook.test:{port}/", None)):
        outcome = send(url, look_up=lambda _host, _port: ["127.0.0.1"], tls=tls)
        assert (outcome.result, outcome.reason) == (CallbackResult.UNREACHABLE, "SSLCertVerificationError")


def test_a_handshake_that_never_ends_is_left_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        outcome = send(f"https://127.0.0.1:{silent.getsockname()[1]}/", timeout_s=0.5)
    assert outcome.result is CallbackResult.TIMEOUT
    assert time.monotonic() - begun < 5
