"""The operators' site: a login from settings, sessions in Redis, and not one query."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.test import Client, override_settings

from tests import ops_site
from tests.ops_site import PASSWORD, login
from tests.services import Valkey

pytestmark = pytest.mark.usefixtures("desk")


@pytest.fixture(scope="module")
def users() -> dict[str, Any]:
    return ops_site.users()


@pytest.fixture(autouse=True)
def site(valkey: Valkey, users: dict[str, Any]) -> Iterator[None]:
    with ops_site.served(valkey, users):
        yield


def test_an_operator_logs_in_and_out() -> None:
    client = Client()
    assert login(client)["Location"] == "/ops/"
    page = client.get("/ops/")
    assert page.status_code == 200
    assert "olga" in page.content.decode()
    assert client.post("/ops/logout/").status_code == 200
    assert client.get("/ops/").status_code == 302


@pytest.mark.parametrize("address", ["/ops/", "/ops/logout/"])
def test_everything_but_the_login_asks_for_it(address: str) -> None:
    response = Client().get(address)
    assert response.status_code == 302
    assert response["Location"].startswith(("/ops/login/?next=", "/ops/"))


@pytest.mark.parametrize(("name", "password"), [("olga", "wrong"), ("eve", PASSWORD), ("", ""), ("olga\x00", PASSWORD)])
def test_a_wrong_login_is_told_nothing(name: str, password: str) -> None:
    client = Client()
    response = login(client, name, password)
    assert response.status_code == 200
    assert "sessionid" not in client.cookies
    assert client.get("/ops/").status_code == 302


def test_an_operator_without_rights_sees_nothing() -> None:
    client = Client()
    login(client, "nobody")
    assert client.get("/ops/").status_code == 302


def test_an_operator_taken_out_of_the_settings_is_logged_out() -> None:
    client = Client()
    login(client)
    with override_settings(EXPORTS_OPS_USERS={}):
        assert client.get("/ops/").status_code == 302


def test_a_new_password_ends_old_sessions(users: dict[str, Any]) -> None:
    client = Client()
    login(client)
    with override_settings(EXPORTS_OPS_USERS={"olga": {**users["olga"], "password": make_password("another")}}):
        assert client.get("/ops/").status_code == 302


def test_a_login_needs_the_csrf_token() -> None:
    assert login(Client(enforce_csrf_checks=True)).status_code == 403


@pytest.mark.parametrize(
    "address", ["/ops/password_change/", "/ops/jsi18n/", "/ops/autocomplete/", "/ops/exports/order/", "/ops/auth/user/"]
)
def test_addresses_of_the_admin_that_need_tables_do_not_exist(address: str) -> None:
    client = Client()
    login(client)
    assert client.get(address).status_code == 404
