"""One test for each id of the system checks."""

import hashlib
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.test import override_settings

from exports import checks
from exports.checks import check_settings
from tests.conftest import exports_settings

GOOD = {
    "owner": "alice",
    "sha256": hashlib.sha256(b"a token of 128 random bits").hexdigest(),
    "rights": ["export.view"],
}


def found(users: Any = None, *, debug: bool = False, **settings: Any) -> list[str | None]:
    with override_settings(EXPORTS=settings, DEBUG=debug, EXPORTS_OPS_USERS=users or {}):
        return [message.id for message in check_settings()]


def test_good_settings_pass() -> None:
    assert found(tokens=(GOOD,)) == []


@pytest.mark.parametrize("settings", [{"lease_ms": 1}, {"nonsense": 1}, {"auth": "basic"}])
def test_e001_a_wrong_setting(settings: dict[str, Any]) -> None:
    assert found(**settings) == ["exports.E001"]


def test_e002_no_authentication_outside_of_the_demo() -> None:
    assert found(auth="none") == ["exports.E002"]
    assert found(auth="none", debug=True) == []
    with override_settings(EXPORTS_LOOPBACK_DEMO=True):
        assert found(auth="none") == []


@pytest.mark.parametrize(
    "change",
    [{"owner": ""}, {"owner": 7}, {"owner": "a\nb"}, {"sha256": "abc"}, {"sha256": None}, {"rights": []}, {"rights": "export.view"}, {"rights": ["export.all"]}, {"extra": 1}],
)  # fmt: skip
def test_e003_a_malformed_token(change: dict[str, Any]) -> None:
    assert found(tokens=({**GOOD, **change},)) == ["exports.E003"]


@pytest.mark.parametrize(
    "digest", [hashlib.sha256(b"secret").hexdigest(), hashlib.sha256(b"").hexdigest().upper(), "0" * 64]
)
def test_e004_a_token_that_anybody_guesses(digest: str) -> None:
    assert found(tokens=({**GOOD, "sha256": digest},)) == ["exports.E004"]


def test_e004_a_token_of_two_owners() -> None:
    assert found(tokens=(GOOD, {**GOOD, "owner": "bob"})) == ["exports.E004"]


@pytest.mark.parametrize("secret", ["", "short"])
def test_e005_a_gateway_without_a_strong_secret(secret: str) -> None:
    assert found(auth="gateway", gateway_secret=secret) == ["exports.E005"]
    assert found(auth="gateway", gateway_secret="x" * 32) == []


@pytest.mark.parametrize(
    "user", ["plain", {"password": "plain", "rights": ["ops.read"]}, {"password": None, "rights": []}, {"rights": ["ops.read"]}]
)  # fmt: skip
def test_e006_an_operator_without_a_hash(user: Any) -> None:
    assert found({"eve": user}) == ["exports.E006"]


def test_e006_an_operator_with_other_rights() -> None:
    password = make_password("secret")
    assert found({"eve": {"password": password, "rights": ["export.submit"]}}) == ["exports.E006"]
    assert found({"eve": {"password": password, "rights": ["ops.read", "ops.act"]}}) == []


@pytest.mark.parametrize("path", ["os.path.join", "nowhere.Kind", "exports.kinds.orders.Missing"])
def test_e007_a_kind_that_cannot_be_loaded(path: str) -> None:
    with exports_settings(kinds=(path,)):
        [message] = checks.check_kinds()
    assert message.id == "exports.E007"
    assert "kinds" in message.msg
