"""The product as an operator runs it: a web process and single worker processes, each a pid that a test may kill."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests import lifeline, services

TOKEN = "t" * 40
WEB = ("-m", "gunicorn", "-c", "python:config.gunicorn")
ALL_GROUPS = ("fast", "lanes", "lanes", "lanes", "lanes", "finish")
FAST_TIMES = {
    "LEASE_MS": "3000",
    "RENEW_EVERY_MS": "500",
    "SWEEP_EVERY_MS": "500",
    "SETTLE_LAG_S": "0",
    "XMIN_WAIT_S": "1",
    "RETRY_DELAYS_MS": "100,200,400",
}


class Site:
    """One installation in a folder. Settings are those of `EXPORTS_…`, without the prefix."""

    def __init__(self, folder: Path, *, valkey: services.Valkey, database_url: str, **settings: str) -> None:
        self.folder = folder
        self.valkey = valkey
        self.port = services.free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        token = {"owner": "ann", "sha256": hashlib.sha256(TOKEN.encode()).hexdigest(), "rights": _RIGHTS}
        self.environment = {
            "PATH": os.environ["PATH"],
            "SECRET_KEY": "k" * 60,
            "HTTPS": "0",
            "DATABASE_URL": database_url,
            "EXPORTS_REDIS_URL": valkey.url(1),
            "EXPORTS_BROKER_URL": valkey.url(0),
            "EXPORTS_CACHE_URL": valkey.url(2),
            "EXPORTS_SPOOL_DIR": str(folder / "spool"),
            "EXPORTS_STORE_DIR": str(folder / "files"),
            "EXPORTS_SPOOL_RESERVE_MB": "0",
            "EXPORTS_TOKENS": json.dumps([token]),
            "EXPORTS_WEB_BIND": f"127.0.0.1:{self.port}",
            **{f"EXPORTS_{name}": value for name, value in {**FAST_TIMES, **settings}.items()},
        }

    # --- processes -------------------------------------------------------------------------

    def start_web(self) -> subprocess.Popen[bytes]:
        process = self.start_command("web", *WEB)
        wait_for(lambda: self.get("/healthz")[0] == 200)
        return process

    def start_worker(self, group: str, **settings: str) -> subprocess.Popen[bytes]:
        """One worker; settings as in the class, for this process alone."""
        return self.start_command(group, "-m", "config.worker", group, **settings)

    def start_workers(self) -> list[subprocess.Popen[bytes]]:
        return [self.start_worker(group) for group in ALL_GROUPS]

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def kill_all(self) -> None:
        """kill -9 of every process and its children, at once."""
        for process in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.processes[:]:
            process.wait()
            self.forget(process)

    def forget(self, process: subprocess.Popen[bytes]) -> None:
        """It has ended, and another one takes its place."""
        lifeline.let_go(process.pid)
        self.processes.remove(process)

    def logs(self) -> list[dict[str, Any]]:
        """Every log line of every process so far."""
        lines = []
        for path in sorted(self.folder.glob("*.log")):
            found = path.read_text("utf-8").splitlines()
            lines.extend(json.loads(line) for line in found if line.startswith("{"))
        return lines

    def start_command(self, name: str, *arguments: str, **settings: str) -> subprocess.Popen[bytes]:
        """Python with these arguments in the site's environment; its output goes to a log of that name."""
        environment = {**self.environment, **{f"EXPORTS_{key}": value for key, value in settings.items()}}
        with (self.folder / f"{name}-{uuid.uuid4().hex[:6]}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments], env=environment, stdout=log, stderr=log, start_new_session=True
            )
        lifeline.hold(process.pid)
        self.processes.append(process)
        return process

    # --- the API ---------------------------------------------------------------------------

    def call(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; a refusal is an answer like any other."""
        request = urllib.request.Request(
            path if path.startswith("http") else f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, dict(refusal.headers), refusal.read()
        except OSError:
            return 0, {}, b""

    def get(self, path: str) -> tuple[int, dict[str, str], bytes]:
        return self.call("GET", path)

    def submit(self, first: str, last: str, output: str = "csv", *, request_id: str = "") -> str:
        body = {"requestId": request_id or uuid.uuid4().hex, "from": first, "to": last, "format": output}
        status, _, answer = self.call("POST", "/api/orders/export", body)
        assert status in (200, 202), answer
        return str(json.loads(answer)["taskId"])

    def progress(self, task_id: str) -> dict[str, Any]:
        status, _, answer = self.get(f"/api/orders/export/{task_id}")
        assert status == 200, answer
        found: dict[str, Any] = json.loads(answer)
        return found

    def cancel(self, task_id: str) -> int:
        return self.call("POST", f"/api/orders/export/{task_id}/cancel")[0]

    def wait(self, task_id: str, *, limit_s: float = 60) -> dict[str, Any]:
        """The progress of a task that has ended."""
        found: dict[str, Any] = {}

        def ended() -> bool:
            found.update(self.progress(task_id))
            return found["state"] in ("succeeded", "failed", "cancelled")

        wait_for(ended, limit_s=limit_s)
        return found

    def download(self, task_id: str) -> bytes:
        """As a browser does: by the link alone, to the store where it leads there."""
        link = f"http://127.0.0.1:{self.port}{self.progress(task_id)['downloadUrl']}"
        with urllib.request.urlopen(link, timeout=60) as answer:
            data: bytes = answer.read()
        return data


_RIGHTS = ["export.submit", "export.view", "ops.read", "ops.act"]


@contextmanager
def running(site: Site) -> Iterator[Site]:
    try:
        yield site
    finally:
        site.kill_all()


def wait_for(condition: Callable[[], bool], *, limit_s: float = 30) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
