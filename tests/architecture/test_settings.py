"""Each process loads what it needs, and production values leave no warning."""

import http.client
import json
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

from tests.services import free_port

ROOT = Path(__file__).resolve().parents[2]
PRODUCTION = {
    "PATH": os.environ["PATH"],
    "SECRET_KEY": secrets.token_urlsafe(64),
    "ALLOWED_HOSTS": "exports.example.com",
    "PROXY_HEADER": "X-Forwarded-Proto",
    "DATABASE_URL": "postgresql://reader@db.example.com/shop",
    "EXPORTS_AUTH": "gateway",
    "EXPORTS_GATEWAY_SECRET": secrets.token_urlsafe(32),
}


def run(*arguments, **variables):
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=PRODUCTION | variables, capture_output=True, text=True, check=False
    )


def loaded(settings, *, modules):
    code = f"import django, sys; django.setup(); print([name for name in {modules!r} if name in sys.modules])"
    done = run("-W", "error", "-c", f"import config; {code}", DJANGO_SETTINGS_MODULE=settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_worker_loads_neither_rest_framework_nor_admin_nor_what_single_steps_need():
    modules = ["rest_framework", "django.contrib.admin", "drf_spectacular", "openpyxl", "boto3", "dramatiq"]
    assert loaded("config.settings.worker", modules=modules) == "['dramatiq']"


def test_the_web_process_loads_no_writer_of_files():
    assert loaded("config.settings.web", modules=["rest_framework", "openpyxl", "boto3"]) == "['rest_framework']"


def test_the_deployment_check_is_clean_with_production_values():
    done = run("manage.py", "check", "--deploy", "--fail-level", "WARNING")
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


def test_the_web_process_refuses_to_start_without_a_secret_key():
    done = run("-c", "import config.wsgi", SECRET_KEY="")
    assert done.returncode != 0
    assert "SECRET_KEY: is needed" in done.stderr


def test_the_web_process_starts_with_production_values():
    done = run("-W", "error", "-c", "import config.wsgi, config.gunicorn; print(config.gunicorn.threads)")
    assert (done.returncode, done.stdout) == (0, "16\n"), done.stderr


def test_every_model_is_without_a_table_of_ours_and_no_migration_exists():
    code = (
        "import config, django; django.setup(); from django.apps import apps;"
        "print([m._meta.label for m in apps.get_app_config('exports').get_models() if m._meta.managed])"
    )
    done = run("-c", code, DJANGO_SETTINGS_MODULE="config.settings.web")
    assert done.stdout == "[]\n", done.stderr
    assert list((ROOT / "exports").rglob("migrations")) == []


def test_gunicorn_answers_writes_json_lines_only_and_ends_with_zero_on_sigterm(tmp_path):
    port = free_port()
    environment = PRODUCTION | {"HOME": str(tmp_path), "EXPORTS_WEB_BIND": f"127.0.0.1:{port}"}
    command = [sys.executable, "-W", "error", "-m", "gunicorn", "--config", "config/gunicorn.py"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as web:
        try:
            status = get(port, "/healthz")
        finally:
            web.terminate()
        _, log = web.communicate(timeout=40)
    assert (status, web.returncode) == (200, 0), log
    assert {json.loads(line)["level"] for line in log.splitlines()} <= {"info", "warning"}
    assert list(tmp_path.iterdir()) == []


def get(port, path):
    """The status of an answer; waits until the server listens."""
    deadline = time.monotonic() + 40
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", path, headers={"Host": "exports.example.com"})
            return connection.getresponse().status
        except ConnectionError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        finally:
            connection.close()
