"""The demo as somebody runs it who has just fetched the code: its own processes, real servers, real kills."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from config.demo import file_check

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = [
    *("fast-1", "finish-1", "lanes-1", "lanes-2", "lanes-3", "lanes-4", "supervisor", "valkey", "web"),
]
pytestmark = [pytest.mark.slow]


ENVIRONMENT = {name: text for name, text in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
"""A shell's: the tests' own settings are not meant."""


def command(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "manage.py", "demo", "--data", str(folder), "--port", "0", "--json", *arguments]


def demo(folder: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """The result and what was said beside it."""
    done = subprocess.run(
        command(folder, *arguments), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


class Served:
    """A demo that stays up."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            command(folder, "--serve", *arguments),
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the demo did not start"
        self.told: dict[str, str] = json.loads(line)
        self.url = self.told["url"]

    def ask(self, path: str, body: dict[str, str] | None = None) -> dict[str, Any]:
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode() if body else None, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            found: dict[str, Any] = json.loads(response.read())
        return found

    def submit(self, *, output: str) -> str:
        body = {"requestId": "one", "from": "2026-09-01", "to": "2026-09-30", "format": output}
        return str(self.ask("/api/orders/export", body)["progressUrl"])

    def wait(
        self, progress_url: str, until: Callable[[dict[str, Any]], bool], *, limit_s: float = 90
    ) -> dict[str, Any]:
        """The first answer that will do; the web process may be away meanwhile."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            with suppress(OSError):
                task = self.ask(progress_url)
                if until(task):
                    return task
            time.sleep(0.02)
        raise AssertionError(f"{progress_url} did not get there within {limit_s} s")

    def pids(self) -> dict[str, int]:
        return {path.stem: int(path.read_text()) for path in sorted((self.folder / "run").glob("*.pid"))}

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(40)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Served]:
    served = Served(folder, *arguments)
    try:
        yield served
    finally:
        served.end()


def kill(pids: dict[str, int]) -> None:
    for pid in pids.values():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def below(folder: Path) -> list[str]:
    """Processes that have a file of the folder open."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(file.path.startswith(str(folder)) for file in process.open_files()):
                found.append(f"{process.pid} {process.name()}")
    return found


def rows_of(served: Served, task: dict[str, Any]) -> int:
    path = served.folder / task["fileName"]
    with urllib.request.urlopen(served.url + task["downloadUrl"], timeout=60) as response:
        path.write_bytes(response.read())
    return file_check.count_rows(path)


def succeeded(task: dict[str, Any]) -> bool:
    assert task["state"] not in ("failed", "cancelled"), task
    return bool(task["state"] == "succeeded")


def test_a_demo_exports_every_order_and_a_second_one_uses_the_same_orders(tmp_path: Path) -> None:
    folder = tmp_path / "数据 #1%20?"
    first, said = demo(folder, "--rows", "3000", "--days", "7")
    assert "making 3,000 orders of 7 days" in said and "removed" not in said
    assert (first["rows"], first["format"], first["database"], first["restarts"]) == (3000, "csv", "sqlite", 0)
    assert Path(first["file"]).parent == folder / "downloads"
    assert first["rows_per_second"] == pytest.approx(3000 / first["seconds"], rel=0.02)
    second, said = demo(folder, "--rows", "3000", "--days", "7", "--format", "xlsx")
    assert "making" not in said and "removed" not in said
    assert file_check.count_rows(Path(second["file"])) == 3000
    _, said = demo(folder, "--rows", "500", "--days", "7")
    assert said.count("other orders than last time: their exports, with the files, are removed") == 1
    assert list((folder / "run").glob("*.pid")) == []
    assert below(tmp_path) == []


def test_a_demo_over_postgresql_reads_with_a_role_that_may_only_read(tmp_path: Path) -> None:
    with serving(tmp_path, "--rows", "2000", "--database", "postgres") as served:
        assert rows_of(served, served.wait(served.submit(output="csv"), succeeded)) == 2000
        text = f". {tmp_path}/environment.sh && exec {sys.executable} manage.py export_doctor"
        done = subprocess.run(
            ["/bin/sh", "-c", text], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^OK +orders grants +the role may only read$", done.stdout, re.MULTILINE)
    assert re.search(r"^OK +workers +fast 1, finish 1, lanes 4$", done.stdout, re.MULTILINE)


def test_a_task_goes_on_when_every_process_was_killed_and_the_demo_starts_again(tmp_path: Path) -> None:
    with ExitStack() as stack:
        served = stack.enter_context(serving(tmp_path, "--rows", "60000"))
        assert list(served.pids()) == PROCESSES
        progress_url = served.submit(output="xlsx")
        task = served.wait(progress_url, lambda task: task["processed"] > 0)
        kill(served.pids())
        assert (task["state"], task["phase"]) == ("running", "fetch")
        again = stack.enter_context(serving(tmp_path, "--rows", "60000"))
        kept = again.ask(progress_url)["processed"]
        assert kept >= task["processed"]
        assert rows_of(again, again.wait(progress_url, succeeded)) == 60_000


def test_killed_processes_are_started_again_and_the_export_goes_on(tmp_path: Path) -> None:
    with serving(tmp_path, "--rows", "60000") as served:
        progress_url = served.submit(output="xlsx")
        served.wait(progress_url, lambda task: task["processed"] > 0)
        before = served.pids()
        kill({name: pid for name, pid in before.items() if name != "supervisor"})
        assert rows_of(served, served.wait(progress_url, succeeded)) == 60_000
        after = served.pids()
        assert list(after) == PROCESSES
        assert [name for name in PROCESSES if after[name] == before[name]] == ["supervisor"]


def test_the_operator_of_the_demo_logs_in_to_the_ops_page(tmp_path: Path) -> None:
    with serving(tmp_path, "--rows", "1000") as served:
        visit = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        form = visit.open(f"{served.url}/ops/login/?next=/ops/", timeout=30).read().decode()
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
        assert token
        fields = {"username": served.told["operator"], "password": served.told["password"]}
        body = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token[1]}).encode()
        with visit.open(f"{served.url}/ops/login/?next=/ops/", body, timeout=30) as page:
            assert (page.status, page.url) == (200, f"{served.url}/ops/")
            assert "lanes" in page.read().decode()


def test_ctrl_c_stops_everything(tmp_path: Path) -> None:
    with serving(tmp_path, "--rows", "1000") as served:
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(40) == 0
    assert list((tmp_path / "run").glob("*.pid")) == []
    assert below(tmp_path) == []


def test_a_killed_supervisor_takes_its_processes_along(tmp_path: Path) -> None:
    with serving(tmp_path, "--rows", "1000") as served:
        pids = served.pids()
        served.process.kill()
        deadline = time.monotonic() + 10
        while any(map(psutil.pid_exists, set(pids.values()) - {served.process.pid})) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert [name for name, pid in pids.items() if psutil.pid_exists(pid)] == []


def test_a_port_and_a_folder_that_are_taken_are_refused_by_name(tmp_path: Path) -> None:
    with serving(tmp_path / "one", "--rows", "1000") as served:
        port = served.url.rpartition(":")[2]
        assert f"port {port}: Address already in use; choose another" in refused(tmp_path / "two", "--port", port)
        assert f"another demo uses {tmp_path / 'one'}" in refused(tmp_path / "one")
        assert served.ask("/readyz") == {"status": "ok"}


def refused(folder: Path, *arguments: str) -> str:
    """What a demo that does not start says."""
    given = [*command(folder, "--rows", "1000"), *arguments]
    done = subprocess.run(given, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_demo_stores_its_files_in_an_object_store_and_finds_them_again(tmp_path: Path) -> None:
    with serving(tmp_path, "--rows", "2000", "--storage", "s3") as served:
        task = served.wait(served.submit(output="csv"), succeeded)
        assert rows_of(served, task) == 2000
        assert "objects" in served.pids()
        assert not (tmp_path / "files").exists()
    with serving(tmp_path, "--rows", "2000", "--storage", "s3") as again:
        assert rows_of(again, again.ask(f"/api/orders/export/{task['taskId']}")) == 2000
    assert below(tmp_path) == []
