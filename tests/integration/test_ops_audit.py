"""What the audit keeps of actions on the ops site that end in more, or in less, than one thing done."""

from typing import Any

import pytest

from exports.pipeline import notify
from exports.state.store import store
from tests import ops_site, pipeline
from tests.conftest import exports_settings
from tests.integration.test_delete import store_away
from tests.integration.test_ops_pages import DAYS, act, fail_task, orders, text  # noqa: F401
from tests.ops_site import operator
from tests.receiver import OPEN, receiving


@pytest.fixture(scope="module")
def users() -> dict[str, Any]:
    return ops_site.users()


def test_a_file_that_a_store_keeps_for_now_is_told_as_deleted_and_audited() -> None:
    task_id, client = pipeline.submit(*DAYS), operator()
    pipeline.work(task_id)
    with store_away():
        shown = text(act(client, "delete", task_id))
    assert "Delete the file, tasks: 1" in shown and "stays as it is" not in shown
    assert f"Task {task_id} is deleted; its file goes when the file store is back" in shown
    [kept] = store().audit(task_id)
    assert (kept.action, kept.by, kept.result) == ("delete", "olga", "deleted")


def test_a_replay_of_two_callbacks_is_two_entries_of_the_audit(caplog: pytest.LogCaptureFixture) -> None:
    client = operator()
    with receiving() as receiver:
        endpoints = (receiver.endpoint("shop"), receiver.endpoint("books"))
        with exports_settings(callbacks=endpoints, callback_delays_ms=(0,), **OPEN):
            told = fail_task()
            notify.deliver_due()
            with caplog.at_level("INFO", logger="exports"):
                act(client, "replay", told)
    kept = sorted((entry.action, entry.result) for entry in store().audit(told))
    assert kept == [("replay", f"{told}-1-failed-{name}") for name in ("books", "shop")]
    lines = [record.event_fields for record in caplog.records if record.getMessage() == "audit.replay"]  # type: ignore[attr-defined]
    assert [(line["reason"], "fromScratch" in line) for line in lines] == [("because", False)] * 2
