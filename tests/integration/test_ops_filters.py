"""A filter that is misspelled must never mean all tasks; and what else the ops site refuses in its own form."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from exports.contracts import State
from tests import ops_site, pipeline
from tests.integration.test_ops_pages import DAYS, act, fail_task, listed, orders, text  # noqa: F401
from tests.ops_site import operator

WRONG = {
    "state=foo": "state must be one of those on offer",
    "code=foo": "code must be one of those on offer",
    "age=1h": "age must be one of those on offer",
    "format=pdf&state=failed": "format must be one of those on offer",
    f"owner={'x' * 256}": "owner must have at most 255 characters",
    "nonsense=1": "nonsense is not a filter",
    "state=failed&Owner=ann": "Owner is not a filter",
}


@pytest.fixture(scope="module")
def users() -> dict[str, Any]:
    return ops_site.users()


@pytest.mark.parametrize("query", WRONG)
def test_a_wrong_filter_is_named_and_shows_and_reaches_no_task(query: str) -> None:
    task_id, client = fail_task(), operator()
    for path in (f"/ops/tasks/?{query}", *(f"/ops/actions/{name}/?{query}" for name in ("delete", "cancel", "rerun"))):
        page = text(client.get(path), 400)
        assert WRONG[query] in page and task_id not in page, path


@pytest.mark.parametrize(
    ("query", "said"),
    {
        "": "task is required",
        "task=": "task must not be empty",
        "task=%20": "task must not be empty",
        "state=": "state must not be empty",
        "owner=ann&state=": "state must not be empty",
        "behind=failed.1.exp_1": "behind is not a filter",
        "task=exp_1&state=failed": "task is not a filter",
    }.items(),
)
def test_an_action_on_nothing_in_particular_is_refused(query: str, said: str) -> None:
    task_id = fail_task()
    page = text(operator().get(f"/ops/actions/delete/?{query}"), 400)
    assert said in page and task_id not in page
    assert pipeline.view(task_id).state is State.FAILED


def test_a_form_that_is_sent_empty_lists_all() -> None:
    task_id = fail_task()
    assert listed(operator(), "?q=&state=&owner=&format=&age=&code=") == [task_id]


def test_a_refusal_is_told_in_the_language_of_the_reader() -> None:
    client = Client(headers={"accept-language": "zh-CN"})
    ops_site.login(client)
    assert "state：必须是所提供的选项之一。" in text(client.get("/ops/tasks/?state=foo"), 400)


def test_the_preview_of_a_cancel_leaves_out_what_is_cancelled() -> None:
    cancelled, failed, client = fail_task(), fail_task(), operator()
    act(client, "cancel", cancelled)
    page = text(client.get("/ops/actions/cancel/?owner=ann"))
    assert "Tasks: 1" in page and f'name="tasks" value="{failed}"' in page
    assert "The task is cancelled and cannot be cancelled." in page


def test_an_address_of_the_site_that_is_none_is_a_page_of_the_site() -> None:
    for path in ("/ops/nope/", "/ops/tasks/x/y/"):
        response = operator().get(path)
        assert "There is nothing at this address." in text(response, 404) and "<h1>Not found</h1>" in text(
            response, 404
        )
        assert response["Content-Security-Policy"].startswith("default-src 'none'")
        assert Client().get(path).status_code == 302


@pytest.mark.parametrize("client", [operator, lambda: Client(headers={"accept-language": "en"})], ids=["in", "out"])
def test_a_form_without_its_token_is_explained_on_a_page_of_the_site(client: Callable[[], Client]) -> None:
    strict = Client(enforce_csrf_checks=True, headers={"accept-language": "en"})
    strict.cookies = client().cookies
    response = strict.post("/ops/language/", {"language": "en"})
    assert "The form is out of date" in text(response, 403)
    assert response["Content-Security-Policy"].startswith("default-src 'none'")
