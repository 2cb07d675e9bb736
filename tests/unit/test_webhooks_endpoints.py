"""Endpoints of the settings: a wrong one stops the start with its entry and field."""

from typing import Any

import pytest
from django.test import override_settings

from exports import conf
from exports.callbacks import CallbackEvent
from exports.checks import check_settings
from exports.errors import SettingInvalid
from exports.webhooks import endpoints
from tests.receiver import OTHER_SECRET, SECRET
from tests.unit.test_webhooks_addresses import INSIDE

GOOD = {
    "id": "shop",
    "owner": "ann",
    "url": "https://hooks.example.com/exports?token=hush-1",
    "events": ["export.succeeded", "export.failed"],
    "secrets": [SECRET],
}


def refusal(*entries: Any, **settings: Any) -> SettingInvalid:
    with pytest.raises(SettingInvalid) as caught:
        endpoints.read(conf.load({"callbacks": entries, **settings}))
    return caught.value


def test_a_good_endpoint_is_read() -> None:
    [found] = endpoints.read(conf.load({"callbacks": (GOOD,)}))
    assert (found.id, found.owner, len(found.keys)) == ("shop", "ann", 1)
    assert found.wants(CallbackEvent.FAILED, owner="ann")
    assert not found.wants(CallbackEvent.FAILED, owner="bob")
    assert not found.wants(CallbackEvent.CANCELLED, owner="ann")


def test_a_star_stands_for_every_owner() -> None:
    [found] = endpoints.read(conf.load({"callbacks": ({**GOOD, "owner": "*"},)}))
    assert found.wants(CallbackEvent.FAILED, owner="bob")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", ""), ("id", "a.b"), ("id", "a|b"), ("id", 7), ("owner", ""), ("owner", None), ("owner", "a\nb"),
        ("url", None), ("url", "http://hooks.example.com/"), ("url", "ftp://hooks.example.com/"), ("url", "https://"), ("url", "https:///x"),
        ("url", "https://user@hooks.example.com/"), ("url", "https://u:p@hooks.example.com/"), ("url", "https://hooks.example.com/#x"),
        ("url", "https://hooks.example.com:0/"), ("url", "https://hooks.example.com:99999/"), ("url", "https://hooks.example.com\\@10.0.0.5/"),
        ("url", "https://hooks.example.com/ x"), ("url", "https://hooks.example.com/\r\nX: y"), ("url", "https://höoks.example.com/"),
        ("events", []), ("events", ["succeeded"]), ("events", "export.succeeded"), ("secrets", []), ("secrets", SECRET), ("secrets", ["short"]),
        ("secrets", [SECRET] * 5), ("extra", 1),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_its_entry(field: str, value: Any) -> None:
    wrong = refusal({**GOOD, "id": "first"}, {**GOOD, field: value})
    assert wrong.name == f"callbacks[1].{field}"
    assert "hush" not in str(wrong)
    assert SECRET not in str(wrong)


def test_a_missing_field_is_named() -> None:
    assert refusal({name: value for name, value in GOOD.items() if name != "events"}).name == "callbacks[0].events"


def test_an_id_stands_for_one_endpoint() -> None:
    assert refusal(GOOD, {**GOOD, "owner": "bob"}).name == "callbacks[1].id"


@pytest.mark.parametrize(
    "host", [host for host in INSIDE if host.isascii() and host[0] not in "Ll" and "%" not in host]
)
def test_an_inner_address_is_refused_at_the_start(host: str) -> None:
    shown = f"[{host}]" if ":" in host else host
    assert refusal({**GOOD, "url": f"https://{shown}/x"}).name == "callbacks[0].url"


def test_a_name_of_this_machine_is_refused_at_the_start() -> None:
    for host in ("localhost", "LOCALHOST", "localhost.", "hook.localhost"):
        assert refusal({**GOOD, "url": f"https://{host}/x"}).name == "callbacks[0].url"


def test_plain_http_and_private_addresses_are_opened_by_settings() -> None:
    inside = {**GOOD, "url": "http://10.0.0.5:8080/x"}
    assert refusal(inside, callback_plain_http=True).name == "callbacks[0].url"
    assert refusal(inside, callback_private_addresses=True).name == "callbacks[0].url"
    opened = conf.load({"callbacks": (inside,), "callback_plain_http": True, "callback_private_addresses": True})
    assert len(endpoints.read(opened)) == 1


def test_neither_url_nor_secret_is_shown() -> None:
    settings = conf.load({"callbacks": ({**GOOD, "secrets": [SECRET, OTHER_SECRET]},)})
    shown = repr(settings) + repr(endpoints.read(settings))
    assert "hush" not in shown
    assert SECRET not in shown
    assert OTHER_SECRET not in shown


def test_e008_a_wrong_endpoint_stops_the_start() -> None:
    with override_settings(EXPORTS={"callbacks": ({**GOOD, "url": "http://10.0.0.5/"},)}, EXPORTS_OPS_USERS={}):
        [message] = check_settings()
    assert message.id == "exports.E008"
    assert message.msg == "callbacks[0].url: must be https"
