import subprocess
import sys
from pathlib import Path

import pytest

from config import env
from exports import conf
from exports.errors import SettingInvalid

TOKENS = '[{"owner": "shop", "sha256": "00", "rights": ["export.view"]}]'


def refusal(**variables):
    with pytest.raises(SettingInvalid) as caught:
        env.read(variables)
    return caught.value.name


def test_an_empty_environment_gives_the_defaults_and_no_secret():
    found = env.read({})
    assert (found.debug, found.https, found.secret_key, found.exports) == (False, True, "", {})
    assert (found.broker_url, found.cache_url) == ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/2")
    assert found.allowed_hosts == ("localhost", "127.0.0.1", "[::1]")


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("EXPORTS_PAGE_ROWS", "500", "page_rows", 500),
        ("EXPORTS_FORMULA_GUARD", "No", "formula_guard", False),
        ("EXPORTS_BUSINESS_ZONE", "Europe/Berlin", "business_zone", "Europe/Berlin"),
        ("EXPORTS_KINDS", "shop.A, shop.B", "kinds", ("shop.A", "shop.B")),
        ("EXPORTS_RETRY_DELAYS_MS", "1,4, 16", "retry_delays_ms", (1, 4, 16)),
        ("EXPORTS_SPOOL_DIR", "/srv/spool", "spool_dir", Path("/srv/spool")),
        ("EXPORTS_DELIMITER", r"\t", "delimiter", "\t"),
        ("EXPORTS_CALLBACKS", '[{"id": "shop"}]', "callbacks", ({"id": "shop"},)),
        ("EXPORTS_CALLBACK_DELAYS_MS", "5, 30", "callback_delays_ms", (5, 30)),
        ("EXPORTS_TOKENS", TOKENS, "tokens", ({"owner": "shop", "sha256": "00", "rights": ["export.view"]},)),
    ],
)
def test_each_kind_of_setting_is_read_with_its_type(variable, text, name, value):
    assert env.read({variable: text}).exports == {name: value}


def test_an_empty_variable_counts_as_not_set():
    assert env.read({"EXPORTS_PAGE_ROWS": " ", "DEBUG": ""}).exports == {}


def test_tokens_may_stand_in_a_file(tmp_path):
    file = tmp_path / "tokens.json"
    file.write_text(TOKENS, "utf-8")
    assert env.read({"EXPORTS_TOKENS": str(file)}) == env.read({"EXPORTS_TOKENS": TOKENS})


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("EXPORTS_PAGE_ROWS", "many"),
        ("EXPORTS_PAGE_ROWS", "2001"),
        ("EXPORTS_PAGE_ROWS", "１"),
        ("EXPORTS_FORMULA_GUARD", "maybe"),
        ("EXPORTS_BUSINESS_ZONE", "Mars/Base"),
        ("EXPORTS_CHARSET", "latin-1"),
        ("EXPORTS_RETRY_DELAYS_MS", "1,x"),
        ("EXPORTS_TOKENS", "{"),
        ("EXPORTS_CALLBACKS", '{"id": "shop"}'),
        ("EXPORTS_TOKENS", '{"owner": "shop"}'),
        ("EXPORTS_TOKENS", "no/such/file"),
        ("EXPORTS_OPS_USERS", "[]"),
        ("EXPORTS_LOG_FORMAT", "xml"),
        ("EXPORTS_SUPERVISOR_PID", "-1"),
        ("EXPORTS_WEB_THREADS", "1"),
        ("EXPORTS_BROKER_URL", "amqp://localhost"),
        ("EXPORTS_CACHE_URL", "redis://localhost/two"),
        ("EXPORTS_BROKER_URL", "redis://localhost:port/0"),
        ("EXPORTS_PAGE_ROW", "500"),
        ("DEBUG", "perhaps"),
    ],
)
def test_a_wrong_value_is_refused_with_the_name_of_its_variable(variable, text):
    assert refusal(**{variable: text}) == variable


def test_settings_that_contradict_each_other_are_refused():
    assert refusal(EXPORTS_FILE_DAYS="8") == "EXPORTS_FILE_DAYS"


@pytest.mark.parametrize(
    "broker", ["redis://127.0.0.1:6379/1", "redis://localhost/1", "redis://:secret@localhost:6379/1"]
)
def test_state_and_broker_in_one_database_are_refused_however_it_is_spelt(broker):
    assert refusal(EXPORTS_BROKER_URL=broker) == "EXPORTS_BROKER_URL"


def test_no_secret_shows_in_the_text_of_an_environment():
    secrets = {
        "SECRET_KEY": "secret-1",
        "DATABASE_URL": "postgresql://reader:secret-2@localhost/shop",
        "EXPORTS_BROKER_URL": "redis://:secret-3@localhost/0",
        "EXPORTS_GATEWAY_SECRET": "secret-4",
        "EXPORTS_OPS_USERS": '{"ann": "secret-5"}',
    }
    assert "secret-" not in repr(env.read(secrets))


def test_a_wrong_secret_is_told_without_its_text():
    with pytest.raises(SettingInvalid) as caught:
        env.read({"EXPORTS_TOKENS": "[secret-1"})
    assert str(caught.value) == "EXPORTS_TOKENS: is not JSON"
    assert caught.value.__cause__ is None


def test_a_process_with_a_wrong_setting_does_not_start():
    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        env={"PATH": "", "EXPORTS_LEASE_MS": "soon"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "EXPORTS_LEASE_MS: must be a whole number" in done.stderr


def test_dramatiq_finds_its_variables_set_before_its_import():
    code = (
        "import config.broker, dramatiq.worker as w; print(w.QUEUE_PREFETCH, w.DELAY_QUEUE_PREFETCH, w.WORKER_TIMEOUT)"
    )
    done = subprocess.run([sys.executable, "-c", code], env={"PATH": ""}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0", "1000"]


S3 = {"EXPORTS_STORAGE": "s3", "EXPORTS_S3_BUCKET": "files"}


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"EXPORTS_STORAGE": "s3"}, "EXPORTS_S3_BUCKET"),
        ({"EXPORTS_S3_BUCKET": "files"}, "EXPORTS_STORAGE"),
        ({"EXPORTS_S3_ENDPOINT_URL": "https://s3.example.com"}, "EXPORTS_STORAGE"),
        ({"EXPORTS_STORAGE": "disk"}, "EXPORTS_STORAGE"),
        ({"EXPORTS_SPOOL": "s3"}, "EXPORTS_STORAGE"),
        ({**S3, "EXPORTS_SPOOL": "disk"}, "EXPORTS_SPOOL"),
        ({**S3, "EXPORTS_S3_ACCESS_KEY": "key"}, "EXPORTS_S3_SECRET_KEY"),
        ({**S3, "EXPORTS_S3_SECRET_KEY": "secret"}, "EXPORTS_S3_ACCESS_KEY"),
        ({**S3, "EXPORTS_S3_KMS_KEY": "key"}, "EXPORTS_S3_ENCRYPTION"),
        ({**S3, "EXPORTS_S3_ENCRYPTION": "DES"}, "EXPORTS_S3_ENCRYPTION"),
        ({**S3, "EXPORTS_S3_ENDPOINT_URL": "s3.example.com"}, "EXPORTS_S3_ENDPOINT_URL"),
        ({**S3, "EXPORTS_S3_PREFIX": "/files"}, "EXPORTS_S3_PREFIX"),
        ({**S3, "EXPORTS_S3_PART_MB": "4"}, "EXPORTS_S3_PART_MB"),
    ],
)
def test_half_a_configuration_of_the_store_is_refused_with_the_name_of_what_is_wrong(variables, name):
    assert refusal(**variables) == name


def test_a_whole_configuration_of_the_store_is_read_and_its_secret_not_shown():
    found = env.read({**S3, "EXPORTS_S3_ACCESS_KEY": "key", "EXPORTS_S3_SECRET_KEY": "hidden"})
    assert found.exports["s3_secret_key"] == "hidden"
    assert "hidden" not in repr(found) + repr(conf.load(found.exports))
