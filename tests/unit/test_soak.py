"""The soak run itself: a seed replays, and its ledger sees each kind of broken promise."""

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from tests.processes import Site
from tests.soak import __main__ as soak
from tests.soak.__main__ import ROOT, paths
from tests.soak.ledger import Ledger
from tests.soak.modes import MODES, Loads, Suite
from tests.soak.schedule import FAULTS, LOADS, schedule
from tests.soak.world import World

BODY = {"requestId": "r", "from": "2026-09-01", "to": "2026-09-02", "format": "csv"}
EXPECTED = {"2026-09-01": [("1", "A"), ("2", "B")], "2026-09-02": [("7", "C")], "2026-09-03": [("9", "D")]}
FILE = b"\xef\xbb\xbfid,order_no\r\n1,A\r\n2,B\r\n7,C\r\n"


class Answers:
    """Stands in for a site: one task, as its API would show it."""

    def __init__(self, progress: dict[str, Any], file: bytes = FILE, *, task_ids: tuple[str, ...] = ("exp_1",)) -> None:
        self.progress = {
            "processed": 3,
            "sha256": hashlib.sha256(file).hexdigest(),
            "downloadUrl": "/file",
            "drift": {"kind": "exact", "difference": 0},
            "errorCode": None,
            "error": None,
            **progress,
        }
        self.file = file
        self.task_ids = iter(task_ids)

    def call(self, method: str, path: str, body: object = None, **_: str) -> tuple[int, dict[str, str], bytes]:
        if path == "/file":
            return 200, {}, self.file
        if method == "POST" and body is not None:
            return 202, {}, json.dumps({"taskId": next(self.task_ids)}).encode()
        return 200, {}, json.dumps(self.progress).encode()


def ledger(site: Answers) -> Ledger:
    made = Ledger(cast(Site, site), tokens={"ann": "t"}, expected=EXPECTED)
    made.submit("ann", BODY)
    return made


def test_a_seed_gives_the_same_loads_and_faults_each_time() -> None:
    assert schedule(7, seconds=60) == schedule(7, seconds=60) != schedule(8, seconds=60)
    assert schedule(7, seconds=60)[:20] == schedule(7, seconds=600)[:20]
    assert all(callable(getattr(World, name)) for name in (*LOADS, *FAULTS))
    assert {event.name for event in schedule(7, seconds=600)} == {*LOADS, *FAULTS}


@pytest.mark.parametrize(("mode", "least"), [("workers", 500), ("valkey", 50)])
def test_a_mode_does_as_many_faults_as_its_figure_names(mode: str, least: int) -> None:
    found = MODES[mode]
    assert isinstance(found, Loads)
    events = [
        event
        for number in range(3)
        for event in schedule(
            number, seconds=found.count * found.every_s / 3, faults=found.faults, fault_every_s=found.every_s
        )
        if event.name in found.faults
    ]
    assert len(events) >= least


SUITES = [mode for mode in MODES.values() if isinstance(mode, Suite)]


@pytest.mark.parametrize("mode", SUITES)
def test_a_mode_names_tests_that_exist(mode: Suite) -> None:
    texts = [(ROOT / path).read_text("utf-8") for path in paths(mode.files)]
    if "-k" in mode.arguments:
        assert all(word in texts[0].replace("_000", "000") for word in mode.arguments[-1].split(" and "))


def test_a_test_that_hangs_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "GRACE_S", 4)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_addoption\n")
    (tmp_path / "test_hangs.py").write_text("import time\ndef test_hangs():\n    time.sleep(600)\n")
    began = time.monotonic()
    assert soak.run_tests("hangs", [str(tmp_path)], limit_s=3, seed=1)
    assert time.monotonic() - began < 20
    assert "cut" in capsys.readouterr().out


def test_a_whole_file_is_right() -> None:
    found = ledger(Answers({"state": "succeeded"}))
    found.look()
    assert (found.violations, found.open) == ([], [])
    assert found.counts["files compared with the database"] == 1


@pytest.mark.parametrize(
    ("progress", "change", "broken"),
    [
        ({"state": "succeeded"}, lambda file: file.replace(b"2,B\r\n", b""), "does not hold the rows"),
        ({"state": "succeeded"}, lambda file: file.replace(b"2,B", b"1,A"), "does not hold the rows"),
        ({"state": "succeeded"}, lambda file: file + b"9,D\r\n", "does not hold the rows"),
        ({"state": "succeeded", "processed": 2}, lambda file: file, "2 of 3 rows"),
        ({"state": "succeeded", "sha256": "0"}, lambda file: file, "not what was rendered"),
        ({"state": "cancelled"}, lambda file: file, "nobody asked for it"),
        ({"state": "failed", "errorCode": "spool_lost"}, lambda file: file, "failed: spool_lost"),
    ],
)
def test_a_broken_promise_is_seen(progress: dict[str, Any], change: Callable[[bytes], bytes], broken: str) -> None:
    found = ledger(Answers(progress, change(FILE)))
    found.look()
    assert len(found.violations) == 1
    assert broken in found.violations[0]


def test_progress_that_falls_is_seen() -> None:
    site = Answers({"state": "running", "processed": 2})
    found = ledger(site)
    found.look()
    site.progress["processed"] = 1
    found.look()
    assert found.violations == ["exp_1: progress fell from 2 to 1"]


def test_a_second_task_of_one_request_is_seen() -> None:
    found = ledger(Answers({"state": "running"}, task_ids=("exp_1", "exp_2")))
    found.submit("ann", BODY)
    assert found.violations == ["requestId r has two tasks: exp_1, exp_2"]


def test_two_files_of_one_window_must_be_the_same() -> None:
    site = Answers({"state": "succeeded"}, task_ids=("exp_1", "exp_2"))
    found = ledger(site)
    found.look()
    found.submit("ann", {**BODY, "requestId": "another"})
    site.file = FILE.replace(b"order_no", b"orderno")
    site.progress["sha256"] = hashlib.sha256(site.file).hexdigest()
    found.look()
    assert found.violations == ["exp_2: two files of one window differ"]
