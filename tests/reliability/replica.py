"""A streaming replica of a real PostgreSQL server, whose replay a test may hold."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests import services
from tests.processes import wait_for


class Replica(services.Postgres):
    """A hot standby that answers reads only."""

    @contextmanager
    def behind(self) -> Iterator[None]:
        """Nothing that is committed from now on is seen here before the block ends."""
        self.execute("SELECT pg_wal_replay_pause()")
        try:
            wait_for(lambda: self._ask("SELECT pg_get_wal_replay_pause_state()") == "paused")
            yield
        finally:
            self.execute("SELECT pg_wal_replay_resume()")

    def catch_up(self, primary: services.Postgres) -> None:
        """Wait until everything committed so far is seen here."""
        with psycopg.connect(primary.dsn()) as connection:
            written = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        assert written is not None
        wait_for(lambda: bool(self._ask("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", written[0])))

    def _ask(self, sql: str, *parameters: object) -> object:
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            row = connection.execute(sql, parameters).fetchone()
        assert row is not None
        return row[0]


def start_replica(folder: Path, primary: services.Postgres, **options: str) -> Replica:
    """options: further server settings, such as `max_standby_streaming_delay`."""
    user = services.give_away(folder)
    data = folder / "data"
    binaries = services.postgres_binaries()
    subprocess.run(
        [
            *(binaries / "pg_basebackup", "-h", primary.host, "-p", str(primary.port), "-U", primary.superuser),
            *("-D", data, "-R", "--wal-method=stream", "--checkpoint=fast", "--no-sync"),
        ],
        cwd="/",
        user=user,
        check=True,
    )
    settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "60", **options}

    def command(port: int) -> list[str]:
        arguments = {**settings, "port": str(port)}
        given = [part for pair in arguments.items() for part in ("-c", "=".join(pair))]
        return [str(binaries / "postgres"), "-D", str(data), *given]

    def ready(port: int) -> None:
        psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres connect_timeout=5").close()

    return Replica(folder, command=command, ready=ready, user=user)
