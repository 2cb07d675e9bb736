"""What the demo shows: lines of text, and one line that changes while a task runs."""

import shutil
import time
from typing import Any, TextIO

_BAR = 30
_LINE_EVERY_S = 2.0


class Screen:
    """On a terminal progress overwrites its line; elsewhere a new line comes every few seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._shown_at = 0.0
        self._open = False

    def line(self, text: str) -> None:
        if self._open:
            self._stream.write("\n")
            self._open = False
        self._stream.write(f"{text}\n")
        self._stream.flush()

    def progress(self, task: dict[str, Any]) -> None:
        """One answer of the progress URL."""
        text = progress_text(task)
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            self._stream.write(f"\r{text[:width]:<{width}}")
            self._open = True
            self._stream.flush()
        elif time.monotonic() - self._shown_at >= _LINE_EVERY_S or task["finishedAt"]:
            self._shown_at = time.monotonic()
            self.line(text)


def progress_text(task: dict[str, Any]) -> str:
    processed, total = task["processed"], task["total"]
    share = processed / total if total else float(task["state"] == "succeeded")
    filled = int(_BAR * share)
    doing = task["state"] if task["finishedAt"] else task["phase"] or task["state"]
    rows = f"{processed:,} of {total:,} rows" if total is not None else "counting"
    return f"[{'#' * filled}{'.' * (_BAR - filled)}] {share:4.0%}  {doing:<9}  {rows}"
