"""Defaults that the brief and the design fix, and what happens to a wrong value."""

from typing import Any

import pytest

from exports.conf import Conf, load
from exports.errors import SettingInvalid


def test_the_pauses_of_the_brief_are_the_defaults() -> None:
    assert Conf().retry_delays_ms == (1000, 4000, 16_000)


def test_the_page_sizes_and_the_lanes_of_the_brief_are_the_defaults() -> None:
    defaults = Conf()
    assert (defaults.page_rows, defaults.page_rows_min, defaults.leases_per_task) == (2000, 200, 4)


def test_the_times_of_the_brief_are_the_defaults() -> None:
    defaults = Conf()
    assert (defaults.lease_ms, defaults.state_days, defaults.file_days) == (60_000, 7, 7)
    assert defaults.cancel_grace_ms < 10_000
    assert defaults.statement_timeout_ms <= 8000


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("page_rows", {"page_rows": 2001}),
        ("page_rows", {"page_rows": "2000"}),
        ("page_rows_min", {"page_rows": 100}),
        ("lease_ms", {"lease_ms": 0}),
        ("renew_every_ms", {"lease_ms": 1000, "renew_every_ms": 600}),
        ("business_zone", {"business_zone": "Mars/Olympus"}),
        ("charset", {"charset": "latin-1"}),
        ("formula_guard", {"formula_guard": 1}),
        ("file_days", {"state_days": 3, "file_days": 4}),
        ("retry_delays_ms", {"retry_delays_ms": (1, -1)}),
        ("callback_delays_ms", {"callback_delays_ms": ()}),
        ("callback_delays_ms", {"callback_delays_ms": (86_400_001,)}),
        ("kinds", {"kinds": ()}),
        ("page_row", {"page_row": 1}),
    ],
)
def test_a_wrong_setting_is_refused_by_its_name(name: str, values: dict[str, Any]) -> None:
    with pytest.raises(SettingInvalid) as refusal:
        load(values)
    assert refusal.value.name == name


def test_secrets_are_not_shown() -> None:
    shown = repr(load({"gateway_secret": "hush", "tokens": ({"owner": "ann", "sha256": "hush", "rights": []},)}))
    assert "hush" not in shown
