"""An HTTP proxy in front of an S3 server: knows the calls, counts them, and fails them as told.

What only AWS does (200 with an error in the body, InvalidPart, NoSuchUpload for a second Complete) is answered here too.
"""

import http.client
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

CREATE, PART, COMPLETE, ABORT = "create", "part", "complete", "abort"
PUT, GET, HEAD, DELETE, LIST, LIST_UPLOADS = "put", "get", "head", "delete", "list", "list uploads"


@dataclass(frozen=True)
class Call:
    """One request. number: of the part, else 0."""

    name: str
    number: int = 0


@dataclass(frozen=True)
class Fault:
    """What becomes of a call. forward: the server does it all the same. code: of the error that is answered.

    status 0: the connection is closed without an answer.
    """

    status: int = 0
    code: str = ""
    forward: bool = False
    wait_s: float = 0.0


LOST_REQUEST = Fault()
LOST_REPLY = Fault(forward=True)
INTERNAL = Fault(500, "InternalError")
SLOW_DOWN = Fault(503, "SlowDown")
ERROR_IN_200 = Fault(200, "InternalError")


class S3Proxy:
    """calls: every request so far, in the order of arrival. `decide` may give a fault for each.

    encryption: what the last call of each name asked for.
    """

    def __init__(self, port: int) -> None:
        self.encryption: dict[str, str] = {}
        self.forget()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, port))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def fail(self, name: str, fault: Fault, *, number: int = 0, times: int = 1) -> None:
        """The next calls of this name; number 0: whatever part."""
        self._planned += [(Call(name, number), fault)] * times

    def count(self, name: str) -> int:
        return sum(call.name == name for call in self.calls)

    def parts(self) -> list[int]:
        return [call.number for call in self.calls if call.name == PART]

    def forget(self) -> None:
        """As new: no call so far, no fault to come."""
        self.calls: list[Call] = []
        self.decide: Callable[[Call], Fault | None] = lambda call: None
        self._planned: list[tuple[Call, Fault]] = []

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def fault_of(self, call: Call) -> Fault | None:
        with self._lock:
            self.calls.append(call)
            for at, (wanted, fault) in enumerate(self._planned):
                if wanted.name == call.name and wanted.number in (0, call.number):
                    del self._planned[at]
                    return fault
        return self.decide(call)


def call_of(method: str, target: str) -> Call:
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    if "partNumber" in query:
        return Call(PART, int(query["partNumber"][0]))
    if "uploads" in query:
        return Call(CREATE if method == "POST" else LIST_UPLOADS)
    if "uploadId" in query:
        return Call(COMPLETE if method == "POST" else ABORT)
    if "list-type" in query:
        return Call(LIST)
    return Call(method.lower())


def _handler(proxy: S3Proxy, port: int) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"proxy": proxy, "server_port": port})


Answer = tuple[int, list[tuple[str, str]], bytes]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: S3Proxy
    server_port: int

    def serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        call = call_of(self.command, self.path)
        self.proxy.encryption[call.name] = self.headers.get("x-amz-server-side-encryption", "")
        fault = self.proxy.fault_of(call)
        try:
            answer = self.forward(body) if fault is None else self.suffer(fault, body)
        except (OSError, http.client.HTTPException):
            answer = None
        if answer is None:
            self.close_connection = True
        else:
            with suppress(OSError):
                self.answer(*answer)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self.serve
        raise AttributeError(name)

    def suffer(self, fault: Fault, body: bytes) -> Answer | None:
        time.sleep(fault.wait_s)
        answer = self.forward(body) if fault.forward else None
        if not fault.code:
            return answer if fault.status else None
        text = f"<?xml version='1.0'?><Error><Code>{fault.code}</Code><Message>m</Message></Error>"
        return fault.status, [("Content-Type", "application/xml")], text.encode()

    def forward(self, body: bytes) -> Answer:
        """The Host stays the proxy's: it is signed."""
        server = http.client.HTTPConnection("127.0.0.1", self.server_port, timeout=60)
        with closing(server):
            server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("expect", "connection"):
                    server.putheader(name, value)
            server.endheaders(body)
            answer = server.getresponse()
            return answer.status, answer.getheaders(), answer.read()

    def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: a log would hold signatures."""
