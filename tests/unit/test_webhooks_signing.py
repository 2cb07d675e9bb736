"""Signatures, checked with the library of the standard."""

import base64
import datetime as dt
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from exports.webhooks import signing
from tests.receiver import OTHER_SECRET, SECRET

BODY = '{"taskId":"exp_TEST1","note":"/ &lt; > & \u2028 😀"}'.encode()
KEYS = (signing.key_of(SECRET),)


def signed(body: bytes = BODY, *, keys: tuple[bytes, ...] = KEYS, at: float | None = None) -> dict[str, str]:
    return signing.headers(body, message_id="exp_1-1-succeeded-shop", timestamp_s=int(at or time.time()), keys=keys)


def test_the_reference_library_accepts_what_is_signed() -> None:
    assert Webhook(SECRET).verify(BODY, signed()) == json.loads(BODY)


@pytest.mark.parametrize(
    "change",
    [{"webhook-id": "exp_1-1-succeeded-sho"}, {"webhook-timestamp": str(int(time.time()) + 60)}, {"webhook-signature": "v1,AAAA"}],
)  # fmt: skip
def test_a_changed_header_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(BODY, signed() | change)


def test_a_changed_body_and_an_old_delivery_are_refused() -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(BODY + b" ", signed())
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(BODY, signed(at=time.time() - 600))


def test_either_secret_verifies_while_one_replaces_the_other() -> None:
    headers = signed(keys=(signing.key_of(SECRET), signing.key_of(OTHER_SECRET)))
    assert len(headers["webhook-signature"].split(" ")) == 2
    for secret in (SECRET, OTHER_SECRET):
        Webhook(secret).verify(BODY, headers)
    assert headers["X-Signature"] == signed()["X-Signature"]


def test_the_signature_of_the_body_is_that_of_the_brief() -> None:
    body = b'{"taskId":"exp_TEST1","state":"succeeded","rows":3}'
    headers = signing.headers(body, message_id="m", timestamp_s=1790000000, keys=(b"test-secret-1",))
    assert headers["X-Signature"] == "sha256=23d533f4122e5a287e2ed20595d0c776338221a1bed2c6f3a73e44017a61455b"
    assert headers["X-Signature-Timestamp"] == headers["webhook-timestamp"] == "1790000000"


def test_ours_equals_the_signature_that_the_reference_library_makes() -> None:
    at = dt.datetime(2026, 9, 14, tzinfo=dt.UTC)
    made = Webhook(SECRET).sign("exp_1-1-succeeded-shop", at, BODY.decode())
    assert signed(at=at.timestamp())["webhook-signature"] == made


@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        ("plain text", "must start with whsec_"),
        (None, "must start with whsec_"),
        ("whsec_§", "must be whsec_ and base64"),
        ("whsec_" + base64.b64encode(b"x" * 23).decode(), "must hold 24 to 64 bytes"),
        ("whsec_" + base64.b64encode(b"x" * 65).decode(), "must hold 24 to 64 bytes"),
    ],
)
def test_a_weak_secret_is_refused_without_its_text(secret: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refusal:
        signing.key_of(secret)
    assert str(refusal.value) == reason


def test_the_example_for_receivers_verifies_what_is_sent_and_nothing_else() -> None:
    text = (Path(__file__).parents[2] / "docs" / "callbacks.md").read_text("utf-8")
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    verify = names["verify"]
    both = signed(keys=(signing.key_of(OTHER_SECRET), signing.key_of(SECRET)))
    assert verify(SECRET, signed(), BODY) and verify(SECRET, both, BODY) and verify(OTHER_SECRET, both, BODY)
    assert not verify(OTHER_SECRET, signed(), BODY)
    assert not verify(SECRET, signed(), BODY + b" ")
    assert not verify(SECRET, signed(at=time.time() - 600), BODY)
    assert not verify(SECRET, signed() | {"webhook-timestamp": str(int(time.time()) + 60)}, BODY)


def test_the_secret_of_the_documentation_is_a_right_one() -> None:
    text = (Path(__file__).parents[2] / "docs" / "callbacks.md").read_text("utf-8")
    [found] = re.findall(r'"secrets": \["(.*?)"\]', text)
    assert len(signing.key_of(found)) == 24
