"""The servers, the orders and the running service that a benchmark needs."""

import datetime as dt
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import redis
from boto3.s3.transfer import TransferConfig
from django.contrib.auth.hashers import make_password

from config.demo.object_store import BUCKET
from tests import ops_site, services
from tests.bench.common import DAYS, FIRST, LAST, PRODUCTION_TIMES, fill
from tests.conftest import running as started
from tests.processes import Site, running

_PART_MB = 8
Case = Callable[[], float]


class World:
    """rows: of the main table. small_rows: of the table for peers that take minutes. big: also four times the rows."""

    def __init__(self, folder: Path, *, rows: int, small_rows: int, kind: str, big: bool) -> None:
        self._folder = folder
        self._sizes = {"orders": rows, "small": small_rows, **({"big": 4 * rows} if big else {})}
        self._kind = kind
        self._sites: dict[str, Site] = {}
        self._urls: dict[str, str] = {}
        self._idle_kib = 0
        self._last_task: dict[tuple[str, str], str] = {}
        """Of a site and a format: its file goes before the next is made, as the output of a peer does."""

    @contextmanager
    def running(self) -> Iterator[None]:
        with ExitStack() as stack:
            self._start_databases(stack)
            for name, url in self._urls.items():
                self._sites[name] = self._start_site(stack, name, url)
            self._s3 = stack.enter_context(started(services.start_s3))
            bucket = {setting.upper(): str(value) for setting, value in self._s3.settings(prefix="bench").items()}
            bucket["S3_PART_MB"] = str(_PART_MB)
            self._sites["s3"] = self._start_site(stack, "s3", self._urls["orders"], **bucket)
            time.sleep(3)
            self._idle_kib = self._peak_kib("orders")
            for name in self._sites:
                self._asleep(name)
            for name in self._sites:
                self._export(name, "csv", days=2)
            yield
            for name in self._sites:
                self._signal(name, signal.SIGCONT)

    def _asleep(self, name: str) -> None:
        """Idle workers look for hints, and for each other; those of other sites must not disturb a case."""
        self._signal(name, signal.SIGSTOP)

    def _signal(self, name: str, number: signal.Signals) -> None:
        site = self._sites[name]
        for process in site.processes:
            os.killpg(process.pid, number)
        os.kill(site.valkey.pid, number)

    def cases(self, *, only: str) -> dict[str, Case]:
        found = {
            "psql copy": self._psql_copy,
            "bare csv": lambda: self._bare("csv"),
            "service csv": lambda: self._export("orders", "csv"),
            "bare s3 upload": self._bare_upload,
            "service s3 csv": lambda: self._export("s3", "csv"),
            "rustpy arrow xlsx": lambda: self._peer("xlsx_rustpy_arrow", "orders", "xlsx"),
            "bare xlsx": lambda: self._bare("xlsx"),
            "service xlsx": lambda: self._export("orders", "xlsx"),
            "values_list sqlite": lambda: self._peer("csv_values_list", "sqlite", "csv"),
            "service sqlite csv": lambda: self._export("sqlite", "csv"),
            "values_list mariadb": lambda: self._peer("csv_values_list", "mariadb", "csv"),
            "service mariadb csv": lambda: self._export("mariadb", "csv"),
            "import-export csv": lambda: self._peer("import_export", "small", "csv"),
            "service csv small": lambda: self._export("small", "csv"),
            "import-export xlsx": lambda: self._peer("import_export", "small", "xlsx"),
            "service xlsx small": lambda: self._export("small", "xlsx"),
        }
        if "big" in self._sizes:
            found["service csv big"] = lambda: self._export("big", "csv")
        wanted = only.split(",")
        return {name: case for name, case in found.items() if any(part in name for part in wanted)}

    def small_latency_s(self, *, count: int) -> list[float]:
        """POST to `succeeded` of 2,000 rows (a day of the smallest table) on the idle service."""
        return [self._export("latency", "csv", days=1) for _ in range(count)]

    def ops_pages_s(self, *, tasks: int, count: int) -> dict[str, list[float]]:
        """Seconds of pages of the ops site, over HTTP, with so many tasks in Redis; page → its answers."""
        self._signal("latency", signal.SIGCONT)
        site = self._sites["latency"]
        with redis.Redis.from_url(site.valkey.url(1)) as client:
            task_id = client.zrevrange("export:index:succeeded", 0, 0)[0].decode()
            ops_site.copy_ended_task(client, task_id, count=tasks)
        operator = Operator(f"http://127.0.0.1:{site.port}")
        pages = {
            "overview": "",
            "list": "tasks/",
            "list of failed": "tasks/?state=failed",
            "search": "tasks/?q=nothing",
        }
        found = {name: [operator.timed(path) for _ in range(count + 1)][1:] for name, path in pages.items()}
        self._asleep("latency")
        return found

    def memory(self) -> dict[str, int]:
        """Peaks in KiB."""
        return {"lane, idle": self._idle_kib, **{f"lane, {name}": self._peak_kib(name) for name in self._sites}}

    # --- the service -----------------------------------------------------------------------

    def _export(self, name: str, output: str, *, days: int = DAYS) -> float:
        self._signal(name, signal.SIGCONT)
        time.sleep(1.0)  # gunicorn ends a web process that slept for too long, and starts another
        site, place = self._sites[name], (name, output)
        try:
            if place in self._last_task:
                status, _, answer = site.call("DELETE", f"/api/orders/export/{self._last_task[place]}")
                assert status == 204, answer
            took, self._last_task[place] = self._export_awake(site, output, days=days)
        finally:
            self._asleep(name)
        return took

    def _export_awake(self, site: Site, output: str, *, days: int) -> tuple[float, str]:
        """Seconds, and the task."""
        last = FIRST + dt.timedelta(days=days - 1)
        body = {"requestId": uuid.uuid4().hex, "from": f"{FIRST}", "to": f"{last}", "format": output}
        began = time.monotonic()
        found = _answer(site, "POST", "", body)
        while found["state"] in ("queued", "running"):
            found = _answer(site, "GET", f"/{found['taskId']}")
        took = time.monotonic() - began
        if found["state"] != "succeeded":
            sys.exit(f"an export failed: {site.progress(found['taskId'])['error']}")
        return took, str(found["taskId"])

    def _start_site(self, stack: ExitStack, name: str, url: str, **settings: str) -> Site:
        folder = self._folder / f"site-{name}"
        (folder / "valkey").mkdir(parents=True)
        valkey = stack.enter_context(started(lambda _: services.start_valkey(folder / "valkey")))
        users = {"olga": {"password": make_password(ops_site.PASSWORD), "rights": ["ops.read"]}}
        settings = {"KINDS": self._kind, "OPS_USERS": json.dumps(users), **PRODUCTION_TIMES, **settings}
        site = Site(folder, valkey=valkey, database_url=url, **settings)
        stack.enter_context(running(site))
        site.start_web()
        site.start_workers()
        return site

    def _peak_kib(self, name: str) -> int:
        pids = [process.pid for process in self._sites[name].processes if process.args[-1] == "lanes"]
        texts = [Path(f"/proc/{pid}/status").read_text("ascii") for pid in pids]
        return max(int(text.split("VmHWM:")[1].split()[0]) for text in texts)

    # --- the peers -------------------------------------------------------------------------

    def _psql_copy(self) -> float:
        from tests.bench.peers.common import select

        binaries = services.postgres_binaries()
        out = self._folder / "copy.csv"
        command = f"\\copy ({select()}) TO '{out}' WITH (FORMAT csv, HEADER)"
        return self._timed([str(binaries / "psql"), self._urls["orders"], "-qX", "-c", command], out)

    def _peer(self, script: str, name: str, extension: str) -> float:
        out = self._folder / f"peer.{extension}"
        module = f"tests.bench.peers.{script}"
        return self._timed([sys.executable, "-m", module, "--url", self._urls[name], "--out", str(out)], out)

    def _bare(self, output: str) -> float:
        out = self._folder / f"bare.{output}"
        window = ["--first", FIRST.isoformat(), "--last", LAST.isoformat()]
        command = [sys.executable, "-m", "tests.bench.bare", "--out", str(out), "--format", output, *window]
        return self._timed(command, out, **self._sites["orders"].environment)

    def _bare_upload(self) -> float:
        """The file that the service has last made, as boto3 sends it: four parts at a time."""
        files = (self._folder / "site-orders" / "files").glob("exp_*/*.csv")
        newest = max(files, key=lambda path: path.stat().st_mtime)
        client, size = self._s3.client(), _PART_MB << 20
        parts = TransferConfig(multipart_threshold=size, multipart_chunksize=size, max_concurrency=4)
        began = time.monotonic()
        client.upload_file(str(newest), BUCKET, "bare.csv", Config=parts)
        return time.monotonic() - began

    def _timed(self, command: list[str], out: Path, **environment: str) -> float:
        began = time.monotonic()
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
        took = time.monotonic() - began
        if done.returncode:
            sys.exit(f"failed: {' '.join(command)}\n{done.stderr}")
        out.unlink()
        return took

    # --- the orders ------------------------------------------------------------------------

    def _start_databases(self, stack: ExitStack) -> None:
        postgres = stack.enter_context(started(services.start_postgres))
        for name, rows in {**self._sizes, "latency": 60_000}.items():
            postgres.execute(f"CREATE DATABASE {name}")
            with psycopg.connect(postgres.dsn(name), autocommit=True) as connection:
                fill(connection.cursor(), vendor="postgresql", rows=rows)
                connection.execute("VACUUM (ANALYZE, FREEZE) orders")
            self._urls[name] = f"postgresql://postgres@{postgres.host}:{postgres.port}/{name}"
        path = self._folder / "orders.sqlite3"
        with sqlite3.connect(path) as connection:
            fill(connection.cursor(), vendor="sqlite", rows=self._sizes["orders"])
        connection.close()
        self._urls["sqlite"] = f"sqlite:///{path}"
        mariadb = stack.enter_context(started(services.start_mariadb))
        mariadb.execute("CREATE DATABASE orders")
        with pymysql.connect(
            host=mariadb.host, port=mariadb.port, user="root", database="orders", charset="utf8mb4"
        ) as connection:
            fill(connection.cursor(), vendor="mysql", rows=self._sizes["orders"])
            connection.commit()
        self._urls["mariadb"] = f"mysql://root@{mariadb.host}:{mariadb.port}/orders"


def _answer(site: Site, method: str, path: str, body: object = None) -> dict[str, Any]:
    """To a client that waits for the end, as `Prefer` allows."""
    status, _, answer = site.call(method, f"/api/orders/export{path}", body, Prefer="wait=10")
    assert status in (200, 202), answer
    found: dict[str, Any] = json.loads(answer)
    return found


class Operator:
    """A browser without a screen that is logged in to the ops site."""

    def __init__(self, root: str) -> None:
        self._root = f"{root}/ops/"
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        self._get("login/")
        [form] = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', self._get("login/").split("login-form")[1])
        fields = {"username": "olga", "password": ops_site.PASSWORD, "csrfmiddlewaretoken": form}
        self._get("login/?next=/ops/", urllib.parse.urlencode(fields).encode())

    def timed(self, path: str) -> float:
        began = time.monotonic()
        page = self._get(path)
        took = time.monotonic() - began
        assert "logout-form" in page, "not logged in"
        return took

    def _get(self, path: str, data: bytes | None = None) -> str:
        with self._opener.open(self._root + path, data) as answer:
            return str(answer.read().decode())
