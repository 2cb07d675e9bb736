"""A receiver of callbacks: a real HTTP server that answers as it is told and keeps what it got."""

import base64
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "whsec_" + base64.b64encode(b"a secret of the tests, 32 bytes.").decode()
OTHER_SECRET = "whsec_" + base64.b64encode(b"another secret, just as long.....").decode()
ALL_EVENTS = ("export.succeeded", "export.failed", "export.cancelled", "export.stalled")
OPEN = {"callback_plain_http": True, "callback_private_addresses": True}


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


Answer = int | tuple[int, dict[str, str], bytes] | Callable[[BaseHTTPRequestHandler], None]
"""A status, or one with headers and body, or a function that does with the connection what it likes."""


@dataclass
class Receiver:
    """answer: (what came, how many came before) → the answer."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    answer: Callable[[Received, int], Answer] = lambda _received, _before: 200
    over: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/hook", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def endpoint(
        self, name: str = "shop", *, owner: str = "*", events: Sequence[str] = ALL_EVENTS, **changes: Any
    ) -> Any:
        """An entry of the setting `callbacks`."""
        return {
            "id": name,
            "owner": owner,
            "url": self.url(f"/{name}"),
            "events": events,
            "secrets": [SECRET],
            **changes,
        }

    def of(self, name: str) -> list[Received]:
        """What came for an endpoint."""
        return [received for received in list(self.received) if received.path == f"/{name}"]

    def answers(self, *answers: Answer) -> None:
        """These in turn, the last one for ever."""
        self.answer = lambda _received, before: answers[min(before, len(answers) - 1)]

    def hang(self, _: BaseHTTPRequestHandler) -> None:
        """Say nothing until the test is over."""
        self.over.wait(60)


class Handler(BaseHTTPRequestHandler):
    server: "Server"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        # A sender that was killed between head and body has sent no request that anybody would look at.
        if len(body) == int(self.headers["Content-Length"]):
            self._say(self._keep(body))

    def do_GET(self) -> None:
        self._say(self._keep(b""))

    def _keep(self, body: bytes) -> Answer:
        receiver = self.server.receiver
        with self.server.lock:
            before = len(receiver.of(self.path.removeprefix("/")))
            received = Received(self.path, dict(self.headers.items()), body, time.monotonic())
            receiver.received.append(received)
        return receiver.answer(received, before)

    def _say(self, answer: Answer) -> None:
        if callable(answer):
            answer(self)
            return
        status, headers, text = answer if isinstance(answer, tuple) else (answer, {}, b"")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, receiver: Receiver) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.receiver = receiver
        self.lock = threading.Lock()
        receiver.port = self.server_port

    def handle_error(self, *_: object) -> None:
        """The product may leave in the middle of an answer."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    with Server(receiver) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.over.set()
            server.shutdown()
            thread.join()
