"""The client of the docs, run as its reader would run it, against real processes."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Open
from tests.processes import TOKEN, Site
from tests.six_days import ROWS

CLIENT = Path(__file__).parents[2] / "docs" / "example_client.py"
WINDOW = ("2026-09-01", "2026-09-06")


def run(site: Site, folder: Path, *arguments: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-I", str(CLIENT), f"http://127.0.0.1:{site.port}", *arguments],
        env={**os.environ, "EXPORTS_TOKEN": token, "PYTHONUTF8": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_example_client_fetches_the_whole_file_and_tells_a_refusal(open_site: Open, tmp_path: Path) -> None:
    site = open_site()
    site.start_web()
    site.start_workers()
    done = run(site, tmp_path, *WINDOW, "csv")
    assert done.returncode == 0, done.stderr
    path = tmp_path / done.stdout.strip()
    rows = list(csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline=""), strict=True))
    assert len(rows) == ROWS + 1
    assert "succeeded 100 % 6,000 of 6,000 rows" in done.stderr
    assert [found.name for found in tmp_path.iterdir()] == [path.name]

    refused = run(site, tmp_path, *reversed(WINDOW), "csv")
    assert (refused.returncode, refused.stderr) == (1, "failed: to must not be before `from`.\n")
    unknown = run(site, tmp_path, *WINDOW, "csv", token="x" * 40)
    assert (unknown.returncode, unknown.stderr) == (1, "failed: The credentials are not valid.\n")


def test_the_example_client_waits_as_long_as_it_is_told(open_site: Open, tmp_path: Path) -> None:
    site = open_site(QUEUED_PER_OWNER="1")
    site.start_web()
    waiting = site.submit(*WINDOW)
    with subprocess.Popen(
        [sys.executable, "-I", str(CLIENT), f"http://127.0.0.1:{site.port}", *WINDOW, "csv"],
        env={**os.environ, "EXPORTS_TOKEN": TOKEN, "PYTHONUTF8": "1"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as client:
        with pytest.raises(subprocess.TimeoutExpired):
            client.wait(3)  # refused with 429 until there is a place
        assert json.loads(site.call("POST", f"/api/orders/export/{waiting}/cancel")[2])["state"] == "cancelled"
        site.start_workers()
        out, err = client.communicate(timeout=120)
    assert client.returncode == 0, err
    assert (tmp_path / out.strip()).stat().st_size > 0
