"""The layers hold, and the contracts that keep them notice when they do not."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint(folder):
    done = subprocess.run(
        [sys.executable, "-c", LINT, "--no-logo", "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path):
    for package in ("config", "exports"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_is_kept():
    code, report = lint(ROOT)
    assert code == 0, report


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("exports/conf.py", "import config.env", "config composes exports, never the other way round"),
        ("exports/state/keys.py", "import exports.pipeline", "exports has layers; siblings do not import each other"),
        ("exports/state/keys.py", "import exports.kinds", "exports has layers; siblings do not import each other"),
        ("exports/pipeline/upload.py", "import exports.pipeline.plan", "A stage imports only later stages"),
        ("exports/pipeline/plan.py", "import exports.pipeline.middleware", "A stage imports only later stages"),
        ("exports/api/identity.py", "import redis", "redis only in state and config"),
        ("exports/api/identity.py", "import dramatiq", "dramatiq only in pipeline and config"),
        ("exports/storage/__init__.py", "import rest_framework", "The REST framework only in api"),
        ("exports/kinds/base.py", "import boto3", "The object store's client only in storage"),
        ("exports/kinds/base.py", "import openpyxl", "openpyxl only in formats"),
        ("exports/formats/base.py", "import django", "formats, contracts and the state machine import no framework"),
        (
            "exports/formats/base.py",
            "import exports.conf",
            "formats, contracts and the state machine import no framework",
        ),
    ],
)
def test_a_forbidden_import_is_noticed(copy, module, line, contract):
    path = copy / module
    path.parent.mkdir(parents=True, exist_ok=True)
    # Modules that an import names must be there, else it is taken for an external one.
    for name in ("plan", "upload"):
        (copy / f"exports/pipeline/{name}.py").touch()
    path.touch()
    path.write_text(path.read_text("utf-8") + f"\n{line}\n", "utf-8")
    code, report = lint(copy)
    assert code == 1, report
    assert f"{contract} BROKEN" in report
