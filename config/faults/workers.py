"""Worker processes of the trial's own: the same program with the same settings, but for short times and small pages."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from config import env

GROUPS = ("fast", "lanes", "lanes")
SHORT_TIMES = {
    "EXPORTS_LEASE_MS": "3000",
    "EXPORTS_RENEW_EVERY_MS": "500",
    "EXPORTS_SWEEP_EVERY_MS": "500",
    "EXPORTS_LOG_FORMAT": "json",
    "EXPORTS_LOG_LEVEL": "INFO",
}
STOP_LIMIT_S = 30.0
_ROOT = Path(__file__).resolve().parents[2]


class Workers:
    """folder: for their logs. Started by the main thread: they die with it."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._settings = {**SHORT_TIMES, **settings, "EXPORTS_SUPERVISOR_PID": str(os.getpid())}
        self._processes: dict[subprocess.Popen[bytes], str] = {}
        self._started = 0

    def __len__(self) -> int:
        return len(self._processes)

    def start(self, *groups: str, **changes: str) -> None:
        """One process a group; without any, the whole crew. changes: variables for these processes alone."""
        for group in groups or GROUPS:
            self._started += 1
            with (self._folder / f"{group}-{self._started}.log").open("ab") as log:
                process = subprocess.Popen(  # noqa: S603  # this package's own program
                    [sys.executable, "-m", "config.worker", group],
                    cwd=_ROOT,
                    env=env.for_worker({**self._settings, **changes}),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            self._processes[process] = group

    def send(self, number: signal.Signals, *, group: str = "") -> None:
        """A signal to all, or to those of one group."""
        for process, own in self._processes.items():
            if group in ("", own):
                process.send_signal(number)

    def kill(self) -> None:
        """End all by SIGKILL, stopped ones too."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As a supervisor stops them."""
        self.send(signal.SIGCONT)
        self._end(signal.SIGTERM)

    def log_lines(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self._folder.glob("*.log")):
            for line in path.read_text("utf-8", errors="replace").splitlines():
                if line.startswith("{"):
                    yield json.loads(line)

    def _end(self, number: signal.Signals) -> None:
        self.send(number)
        for process in self._processes:
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()
