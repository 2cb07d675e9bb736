"""How the code is cut: small functions, small files, one place for each outside thing."""

import ast
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for package in ("config", "exports") for path in (ROOT / package).rglob("*.py"))
PINS = sorted((ROOT / "requirements").glob("*.txt"))


def lengths():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                yield f"{path.relative_to(ROOT)} {node.name}", node.end_lineno - node.lineno + 1


def test_no_function_is_longer_than_60_lines_and_half_of_them_have_at_most_10():
    found = dict(lengths())
    assert {name: size for name, size in found.items() if size > 60} == {}
    assert statistics.median(found.values()) <= 10


def test_no_module_is_longer_than_400_lines():
    sizes = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: size for name, size in sizes.items() if size > 400} == {}


def test_no_module_is_named_for_nothing():
    vague = {"utils", "util", "helpers", "common", "misc", "manager"}
    assert [str(path) for path in MODULES if path.stem in vague] == []


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("import os\nos.environ\n", "exports/service/tasks.py"),
        ("import os\nos.getenv\n", "config/worker.py"),
        ("from django.db import connection\n", "exports/pipeline/plan.py"),
        ("from django.db import models\n", "exports/api/views.py"),
    ],
)
def test_the_linter_bans_the_environment_and_the_orm_outside_their_owners(line, where):
    assert "TID251" in ruff(line, where=where)


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("import os\nos.environ\n", "config/env.py"),
        ("from django.db import connections\n", "exports/kinds/orders/pages.py"),
        ("from django.db import models\n", "exports/models.py"),
    ],
)
def test_the_owners_may(line, where):
    assert "TID251" not in ruff(line, where=where)


def ruff(text, *, where):
    command = [
        Path(sys.executable).with_name("ruff"),
        "check",
        "--no-cache",
        "--select",
        "TID251",
        "--stdin-filename",
        where,
        "-",
    ]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False).stdout


def test_pins_name_no_machine_and_no_place_to_fetch_from():
    assert [path.stem for path in PINS] == ["base", "bench", "demo", "dev", "otel", "prod"]
    place = re.compile(rf"https?://|--(?:extra-)?index-url|--find-links|file://|/home/|{re.escape(str(ROOT))}")
    for path in PINS:
        assert place.findall(path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", PINS, ids=lambda path: path.stem)
def test_every_pin_is_exact_and_has_a_hash(path):
    wanted = [line for line in path.read_text("utf-8").replace("\\\n", "").splitlines() if line and line[0] not in "# "]
    assert [line for line in wanted if not re.match(r"[\w.\-]+==\S+\s+--hash=sha256:[0-9a-f]{64}", line)] == []


def test_every_runtime_dependency_has_its_reason_in_the_docs():
    reasons = (ROOT / "docs/architecture.md").read_text("utf-8").lower()
    names = [
        re.split(r"[\[><=;~ ]", line)[0].lower()
        for name in ("base", "prod", "otel", "demo")
        for line in (ROOT / f"requirements/{name}.in").read_text("utf-8").splitlines()
        if line and not line.startswith(("#", "-"))
    ]
    assert [name for name in names if f"| `{name}` |" not in reasons] == []


def test_the_bounds_in_pyproject_are_those_of_the_requirements():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    bounds = [
        line.replace("django-storages[s3]", "django-storages")
        for name in ("base", "prod")
        for line in (ROOT / f"requirements/{name}.in").read_text("utf-8").splitlines()
        if line and not line.startswith(("#", "-", "async-timeout"))
    ]
    assert [bound for bound in bounds if f'"{bound}"' not in text] == []
