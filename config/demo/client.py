"""The demo as a caller of the REST API: what a front end does, with plain HTTP."""

import http.client
import json
import shutil
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from config.demo.place import DemoError

POLL_EVERY_S = 0.2
_PATIENCE_S = 60.0
"""How long the API may be away, as after a kill, before the demo gives up."""
_CHUNK = 1 << 20

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Api:
    """host: `127.0.0.1:8000`. between: called while waiting."""

    host: str
    between: Callable[[], None]

    def ready(self) -> None:
        """Raises: OSError or DemoError when the service cannot work."""
        status, answer = self._ask("GET", "/readyz")
        if status != http.client.OK:
            raise DemoError(f"/readyz: {status} {answer}")

    def submit(self, *, first_day: str, last_day: str, output: str) -> Answer:
        body = {"requestId": str(uuid.uuid4()), "from": first_day, "to": last_day, "format": output}
        return self._patiently("POST", "/api/orders/export", body)

    def follow(self, progress_url: str, *, show: Callable[[Answer], None]) -> Answer:
        """Poll until the task has ended; its last answer."""
        while True:
            task = self._patiently("GET", progress_url)
            show(task)
            if task["state"] in ("succeeded", "failed", "cancelled"):
                return task
            self._pause(POLL_EVERY_S)

    def download(self, url: str, folder: Path, *, name: str) -> Path:
        """The finished file below `folder`, under its own name."""
        path = folder / Path(name).name
        connection, response = _get(self.host, _path(url))
        if response.status == http.client.FOUND:
            connection.close()
            elsewhere = urlsplit(response.headers["Location"])
            connection, response = _get(elsewhere.netloc, f"{elsewhere.path}?{elsewhere.query}")
        with closing(connection), path.open("wb") as file:
            if response.status != http.client.OK:
                raise DemoError(f"download: {response.status} {response.read(500)!r}")
            shutil.copyfileobj(response, file, _CHUNK)
        return path

    def _patiently(self, method: str, path: str, body: Answer | None = None) -> Answer:
        """Ask again while the service is away. A submit asked twice carries the same requestId, so it is one task."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                status, answer = self._ask(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                status, answer = 0, {"error": str(error)}
            if status in (http.client.OK, http.client.ACCEPTED):
                return answer
            if status not in (0, http.client.SERVICE_UNAVAILABLE) or time.monotonic() >= deadline:
                raise DemoError(f"{method} {unquote(path)}: {status} {json.dumps(answer, ensure_ascii=False)}")
            self._pause(POLL_EVERY_S)

    def _ask(self, method: str, path: str, body: Answer | None = None) -> tuple[int, Answer]:
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            headers = {"Accept": "application/json", "Accept-Language": "en", "Content-Type": "application/json"}
            connection.request(method, _path(path), json.dumps(body) if body else None, headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        try:
            return response.status, cast(Answer, json.loads(text))
        except ValueError:
            return response.status, {"error": text[:200].decode(errors="replace")}

    def _pause(self, seconds: float) -> None:
        self.between()
        time.sleep(seconds)


def _get(host: str, target: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", target)
    return connection, connection.getresponse()


def _path(url: str) -> str:
    """Links may be absolute or start with a slash."""
    return url if url.startswith("/") else "/" + url.split("/", 3)[3]
