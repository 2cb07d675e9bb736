"""Export orders from another program: submit, follow, download. The standard library is all it needs.

    EXPORTS_TOKEN=… python example_client.py http://127.0.0.1:8000 2026-09-01 2026-09-30 csv

The three rules of a good client: one requestId for each thing wanted, kept over every repetition; ask again when the
service says so; compare the file with its digest.
"""

import hashlib
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

TRIES = 8


class ExportError(Exception):
    """The export was refused, failed or was cancelled; the text is the service's own sentence."""


class ExportClient:
    """One service and one identity. token: "" where the service asks for none."""

    def __init__(self, base_url, token="", language="en"):
        self.base_url = base_url.rstrip("/")
        self.headers = {"Accept-Language": language, "Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def submit(self, first_day, last_day, file_format, request_id):
        """The taskId. The same request_id always names the same task, so a repetition is harmless."""
        body = {"requestId": request_id, "from": first_day, "to": last_day, "format": file_format}
        return self._json("POST", "/api/orders/export", body)["taskId"]

    def read(self, task_id):
        return self._json("GET", f"/api/orders/export/{task_id}")

    def cancel(self, task_id):
        return self._json("POST", f"/api/orders/export/{task_id}/cancel")

    def wait(self, task_id, on_progress=lambda task: None):
        """The task at its end. Raises: ExportError unless it has succeeded."""
        while True:
            task = self.read(task_id)
            on_progress(task)
            if task["state"] == "succeeded":
                return task
            if task["state"] in ("failed", "cancelled"):
                raise ExportError(task["error"] or "the export was cancelled")
            time.sleep(task["pollAfterMs"] / 1000)

    def download(self, task, folder):
        """The file's path. Raises: ExportError when what came is not what was made."""
        path = Path(folder) / task["fileName"]
        part = path.with_name(path.name + ".part")
        digest = hashlib.sha256()
        # The link is signed and needs no credentials; it lives for some minutes and is made anew at each read.
        link = urllib.parse.urljoin(self.base_url, self.read(task["taskId"])["downloadUrl"])
        with urllib.request.urlopen(link, timeout=60) as answer, part.open("wb") as file:
            while chunk := answer.read(1 << 20):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != task["sha256"]:
            raise ExportError("the download is damaged")
        part.replace(path)
        return path

    def _json(self, method, path, body=None):
        """The answer. What passes by itself (no connection, 429, 503) is tried again. Raises: ExportError."""
        for attempt in range(TRIES):
            request = urllib.request.Request(
                self.base_url + path,
                method=method,
                headers=self.headers,
                data=None if body is None else json.dumps(body).encode(),
            )
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as refusal:
                with refusal:
                    if refusal.code not in (429, 503) or attempt == TRIES - 1:
                        raise ExportError(_sentence(refusal)) from None
                    pause = float(refusal.headers.get("Retry-After", 5))
            except OSError as error:
                if attempt == TRIES - 1:
                    raise ExportError(f"no connection: {error}") from error
                pause = min(30, 2**attempt / 2)
            time.sleep(pause)
        raise AssertionError


def _sentence(refusal):
    try:
        return json.load(refusal)["detail"]
    except (ValueError, KeyError):
        return f"the service answered {refusal.code}"


def main(base_url, first_day, last_day, file_format):
    client = ExportClient(base_url, token=os.environ.get("EXPORTS_TOKEN", ""))
    task_id = client.submit(first_day, last_day, file_format, request_id=str(uuid.uuid4()))

    def show(task):
        rows = f"{task['processed']:,} of {task['total']:,} rows" if task["total"] is not None else ""
        print(f"{task['state']} {task['progress']} % {rows}", file=sys.stderr)

    try:
        print(client.download(client.wait(task_id, on_progress=show), folder="."))
    except KeyboardInterrupt:
        client.cancel(task_id)
        raise


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except ExportError as error:
        sys.exit(f"failed: {error}")
