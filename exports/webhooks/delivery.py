"""One delivery: a signed POST to a checked address, bounded in time and size, and what became of it.

The host is looked up once and its addresses are checked; the connection goes to one of those, under the host's name
for TLS and `Host`. Redirects are not followed and no proxy of the environment is asked (`http.client` knows neither).
"""

import dataclasses
import datetime as dt
import functools
import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Self
from urllib.parse import SplitResult, urlsplit

from exports.callbacks import CallbackResult, Outcome
from exports.webhooks import addresses, signing
from exports.webhooks.addresses import AddressBlocked, LookUp
from exports.webhooks.endpoints import Endpoint

BODY_LIMIT = 64 * 1024
"""Bytes of an answer that are read; the rest is left."""
BODY_SHOWN = 1024
"""Characters of an answer that the audit keeps."""
_RETRY_AFTER_MAX_S = 24 * 3600


def send(
    endpoint: Endpoint,
    body: bytes,
    *,
    message_id: str,
    timeout_s: float,
    private: bool,
    traceparent: str | None = None,
    look_up: LookUp = addresses.look_up,
    tls: ssl.SSLContext | None = None,
) -> Outcome:
    """POST a body once. Raises nothing: every end is an outcome.

    timeout_s: from the first connection to the last byte of the answer. private: see `addresses.resolve`.
    """
    headers = {
        **signing.headers(body, message_id=message_id, timestamp_s=int(time.time()), keys=endpoint.keys),
        "Content-Type": "application/json",
        "User-Agent": "order-exports/1",
        "Connection": "close",
        **({"traceparent": traceparent} if traceparent else {}),
    }
    begun = time.monotonic()
    try:
        url = urlsplit(endpoint.url)
        found = addresses.resolve(url.hostname or "", _port(url), private=private, look_up=look_up)
        with _Bounded(time.monotonic() + timeout_s) as wire:
            wire.connect(found, url, tls)
            outcome = _post(wire, url, body, headers)
    except AddressBlocked:
        outcome = Outcome(CallbackResult.BLOCKED, reason="address not allowed")
    except TimeoutError:
        outcome = Outcome(CallbackResult.TIMEOUT, reason="no complete answer in time")
    except http.client.HTTPException as error:
        outcome = Outcome(CallbackResult.BROKEN, reason=type(error).__name__)
    except (OSError, UnicodeError) as error:
        outcome = Outcome(CallbackResult.UNREACHABLE, reason=type(error).__name__)
    return dataclasses.replace(outcome, duration_ms=round((time.monotonic() - begun) * 1000))


@functools.cache
def default_tls() -> ssl.SSLContext:
    """Certificates are checked against those that the system trusts."""
    return ssl.create_default_context()


class _Bounded:
    """A connection whose every wait ends at one moment, however slowly the other side drips. Stands in for a socket."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket is not None:
            self._socket.close()

    def connect(self, found: list[str], url: SplitResult, tls: ssl.SSLContext | None) -> None:
        """Connect to the first address that answers; each has its share of the time.

        Raises: OSError (TimeoutError, ssl.SSLError …).
        """
        plain = self._connect_first(found, _port(url))
        self._socket = plain
        if url.scheme == "https":
            plain.settimeout(self.left())
            self._socket = (tls or default_tls()).wrap_socket(plain, server_hostname=url.hostname)

    def left(self) -> float:
        """Seconds. Raises: TimeoutError when none is left."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def sendall(self, data: bytes) -> None:
        self._timed().sendall(data)

    def receive(self, buffer: Any) -> int:
        return self._timed().recv_into(buffer)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What `http.client` reads an answer from."""
        return io.BufferedReader(_Reader(self))

    def _connect_first(self, found: list[str], port: int) -> socket.socket:
        refusal = OSError("the host has no address")
        for at, address in enumerate(found):
            try:
                return socket.create_connection((address, port), timeout=self.left() / (len(found) - at))
            except OSError as error:
                refusal = error
        raise refusal

    def close(self) -> None:
        """`http.client` says so before the answer's body has been read; the block closes."""

    def _timed(self) -> socket.socket:
        assert self._socket is not None
        self._socket.settimeout(self.left())
        return self._socket


class _Reader(io.RawIOBase):
    def __init__(self, wire: _Bounded) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._wire.receive(buffer)


def _post(wire: _Bounded, url: SplitResult, body: bytes, headers: Mapping[str, str]) -> Outcome:
    connection = http.client.HTTPConnection(url.hostname or "", _port(url))
    connection.sock = wire
    target = (url.path or "/") + (f"?{url.query}" if url.query else "")
    connection.request("POST", target, body=body, headers={"Host": url.netloc, **headers})
    answer = connection.getresponse()
    return Outcome(
        _result(answer.status),
        status=answer.status,
        body=_printable(answer.read(BODY_LIMIT)),
        retry_after_ms=_retry_after_ms(answer.headers.get("Retry-After", "")),
    )


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _result(status: int) -> CallbackResult:
    if 200 <= status < 300:
        return CallbackResult.DELIVERED
    return CallbackResult.GONE if status == 410 else CallbackResult.REFUSED


def _printable(data: bytes) -> str:
    """The beginning of a foreign text, on one line."""
    text = data[: BODY_SHOWN * 4].decode(errors="replace")[:BODY_SHOWN]
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _retry_after_ms(value: str) -> int:
    """Seconds or a date, at most a day; 0 for anything else. Source: RFC 9110, 10.2.3."""
    text = value.strip()
    try:
        if text.isascii() and text.isdigit():
            seconds = float(text[:10])
        else:
            seconds = (parsedate_to_datetime(text) - dt.datetime.now(dt.UTC)).total_seconds()
    except (ValueError, TypeError):
        return 0
    return round(min(max(seconds, 0), _RETRY_AFTER_MAX_S) * 1000)
