"""The files of `docs/deploy`: what they start exists, stops in time, and is clean with their own environment."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest
import yaml

from config import env
from config.worker import GROUPS, STOP_LIMIT_MS
from exports.pipeline.remedies import REMEDIES

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "docs/deploy"
MANUAL = (ROOT / "docs/operations.md").read_text("utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
OPTIONAL = {"normal", "slow"}
"""Groups of those who part large exports from others."""
UNITS = sorted((DEPLOY / "systemd").iterdir())
SERVES = ["order-exports-web.service", "order-exports-worker@.service"]


def unit(name: str) -> RawConfigParser:
    found = RawConfigParser(strict=True)
    found.optionxform = str  # type: ignore[assignment, method-assign]  # names of systemd have capitals
    found.read(DEPLOY / "systemd" / name)
    return found


def variables(tmp_path: Path) -> dict[str, str]:
    """The environment file as systemd reads it, with a secret and files that are there."""
    lines = [line for line in (DEPLOY / "order-exports.env").read_text("utf-8").splitlines() if line and line[0] != "#"]
    found = dict(line.split("=", 1) for line in lines)
    token = {
        "owner": "front",
        "sha256": hashlib.sha256(b"random bits of a test").hexdigest(),
        "rights": ["export.submit"],
    }
    for name, content in {"TOKENS": [token], "OPS_USERS": {}, "CALLBACKS": []}.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        found[f"EXPORTS_{name}"] = str(path)
    folders = {"EXPORTS_SPOOL_DIR": str(tmp_path / "spool"), "EXPORTS_STORE_DIR": str(tmp_path / "files")}
    return {**found, **folders, "SECRET_KEY": "0123456789abcdefghij" * 3, "EXPORTS_REDIS_URL": "redis://127.0.0.1:1/1"}


def run(tmp_path: Path, *arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": "", **variables(tmp_path), **changes}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_the_environment_file_holds_only_known_settings(tmp_path: Path) -> None:
    assert env.read(variables(tmp_path)).https
    text = (DEPLOY / "order-exports.env").read_text("utf-8")
    assert not re.search(r"^[^#\n]+ #", text, re.MULTILINE), "systemd takes a comment behind a value for the value"


def test_the_web_process_does_not_start_with_the_file_as_it_is(tmp_path: Path) -> None:
    assert re.search(r"^SECRET_KEY=$", (DEPLOY / "order-exports.env").read_text("utf-8"), re.MULTILINE)
    done = run(tmp_path, "-c", "import config.wsgi", SECRET_KEY="")
    assert done.returncode == 1 and "SECRET_KEY: is needed" in done.stderr


def test_the_deployment_check_is_clean_with_it(tmp_path: Path) -> None:
    done = run(tmp_path, "manage.py", "check", "--deploy", "--fail-level", "WARNING")
    assert (done.returncode, "no issues" in done.stdout) == (0, True), done.stderr


def test_a_probe_on_the_host_is_answered_with_it(tmp_path: Path) -> None:
    code = "import config.wsgi; from django.test import Client; print(Client(headers={'host': '127.0.0.1:8000'}).get('/healthz'))"
    done = run(tmp_path, "-W", "ignore", "-c", code)
    assert "status_code=200" in done.stdout, done.stderr


@pytest.mark.parametrize("name", SERVES)
def test_a_unit_is_started_again_and_has_time_to_stop(name: str) -> None:
    service = unit(name)["Service"]
    assert service["Restart"] == "always"
    assert STOP_LIMIT_MS / 1000 < int(service["TimeoutStopSec"]) <= 30
    assert service["EnvironmentFile"] == "/etc/order-exports.env"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_passes_systemd(path: Path, tmp_path: Path) -> None:
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze (Debian: systemd) is not here")
    for other in UNITS:
        text = re.sub(
            r"/opt/order-exports/\S+", "/bin/true", other.read_text("utf-8").replace("/opt/order-exports\n", "/\n")
        )
        (tmp_path / other.name.replace("@.", "@lanes.1.")).write_text(text)
    ran = subprocess.run(
        [tool, "verify", tmp_path / path.name.replace("@.", "@lanes.1.")], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_every_group_of_workers_has_a_service_and_a_place_in_the_manual() -> None:
    commands = [str(service.get("command", "")) for service in COMPOSE["services"].values()]
    started = [command.split()[-1] for command in commands if command.startswith("python -m config.worker ")]
    assert sorted(started) == sorted(GROUPS.keys() - OPTIONAL)
    assert {name.partition(".")[0] for name in enabled()} == GROUPS.keys() - OPTIONAL


def enabled() -> set[str]:
    """The instances of the worker's unit that the manual enables."""
    [names] = re.findall(r"systemctl enable .*order-exports-worker@\{([^}]*)\}", MANUAL)
    return set(names.split(","))


def test_every_worker_that_is_named_is_one_that_was_enabled() -> None:
    """systemctl starts a new worker for another name, and nothing at all for a pattern."""
    told = MANUAL + " ".join(REMEDIES.values())
    named = re.findall(r"order-exports-worker@(?:\{([^}]*)\}|([^\s`;,]+))", told)
    one_by_one = {single for _, single in named if single} - {"$i"}
    assert one_by_one and one_by_one <= enabled()
    loops = re.findall(r"for i in ([^;]*);.*order-exports-worker@\$i", told)
    lists = [set(several.split(",")) for several, _ in named if several] + [set(loop.split()) for loop in loops]
    assert lists and all(found == enabled() for found in lists)


def test_the_remedy_for_shared_databases_names_them_as_the_environment_file_does() -> None:
    text = (DEPLOY / "order-exports.env").read_text("utf-8")
    found = re.findall(r"^(EXPORTS_\w+_URL)=redis://\S+/(\d)$", text, re.MULTILINE)
    remedy = REMEDIES["redis databases"]
    assert re.findall(r"EXPORTS_\w+_URL", remedy) == [name for name, _ in found]
    assert re.findall(r"…/(\d)", remedy) == [number for _, number in found] == ["0", "1", "2"]


def test_every_service_of_compose_has_time_to_stop_and_volumes_that_are_declared() -> None:
    for name, service in COMPOSE["services"].items():
        used = {volume.partition(":")[0] for volume in service["volumes"]}
        assert {volume for volume in used if not volume.startswith("/")} <= set(COMPOSE["volumes"]), name
        assert service["restart"] == "always", name
        if name != "redis":
            assert service["stop_grace_period"] == "30s", name


def test_compose_needs_no_change_of_a_file_of_the_product() -> None:
    """Environment and secrets come from `/etc`, the addresses of its Redis from itself."""
    for name, service in COMPOSE["services"].items():
        if name != "redis":
            assert service["env_file"] == "/etc/order-exports.env", name
            addresses = {key: url for key, url in service["environment"].items() if key.endswith("_URL")}
            assert {key: url[-8:] for key, url in addresses.items()} == {
                "EXPORTS_BROKER_URL": "@redis/0",
                "EXPORTS_REDIS_URL": "@redis/1",
                "EXPORTS_CACHE_URL": "@redis/2",
            }, name


def test_the_redis_of_compose_is_fit() -> None:
    command = COMPOSE["services"]["redis"]["command"]
    assert "--appendonly yes" in command and "--maxmemory-policy noeviction" in command


def test_the_image_holds_what_the_product_reads() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    for source in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in source.split())
    assert "--require-hashes -r requirements/prod.txt" in text
