"""The manifest on the ops site: shown without JavaScript, escaped, and downloaded as it is stored."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from exports import service, storage
from exports.conf import conf
from exports.pipeline import manifest
from tests import ops_site, pipeline
from tests.integration.test_delete import store_away
from tests.integration.test_ops_pages import CANARY, DAYS, fail_task, orders, text  # noqa: F401
from tests.ops_site import operator


@pytest.fixture(scope="module")
def users() -> dict[str, Any]:
    return ops_site.users()


@pytest.fixture
def task_id() -> str:
    """A task that has succeeded."""
    made = pipeline.submit(*DAYS)
    assert pipeline.work(made).state == "succeeded"
    return made


def test_the_manifest_of_a_file_is_shown_shard_by_shard_and_downloaded(task_id: str) -> None:
    reader, address = operator("rita"), f"/ops/tasks/{task_id}/manifest/"
    assert f'href="{address}"' in text(reader.get(f"/ops/tasks/{task_id}/"))
    page, stored = text(reader.get(address)), service.read_manifest(task_id, principal=pipeline.ANN)
    for shard in json.loads(stored)["shards"]:
        keys = f"{shard['firstKey']} … {shard['lastKey']}"
        told = [shard["label"], keys, str(shard["planned"]), str(shard["rows"]), "",
                f"{shard['bytes']:,}", shard["sha256"]]  # fmt: skip
        assert told in [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in page.split("<tr>")]
    assert pipeline.view(task_id).sha256 in page
    response = reader.get(re.findall(r'href="([^"]*manifest.json)"', page)[0])
    assert response.content == stored
    assert response["Content-Disposition"] == f'attachment; filename="{task_id}.manifest.json"'


def test_markup_in_a_manifest_is_escaped_and_a_damaged_one_explained(task_id: str) -> None:
    path = Path(conf().store_dir) / manifest.key(pipeline.view(task_id).object_key)
    path.write_text(path.read_text("utf-8").replace(DAYS[0], CANARY), "utf-8")
    page = operator().get(f"/ops/tasks/{task_id}/manifest/").content.decode()
    assert CANARY not in page and html.escape(CANARY) in page
    path.write_text("{}")
    assert "Internal error" in text(operator().get(f"/ops/tasks/{task_id}/manifest/"), 500)


@pytest.mark.parametrize("name", ["manifest/", "manifest.json"])
def test_a_manifest_that_is_not_there_is_explained_and_the_task_is_shown_all_the_same(task_id: str, name: str) -> None:
    client = operator()
    assert "it has no file" in text(client.get(f"/ops/tasks/{fail_task()}/{name}"), 409)
    with store_away():
        assert "The file store is not available" in text(client.get(f"/ops/tasks/{task_id}/{name}"), 503)
        assert "SHA-256" in text(client.get(f"/ops/tasks/{task_id}/"))
    storage.artifacts().delete(task_id)
    assert "There is no such task, or it is kept no longer." in text(client.get(f"/ops/tasks/{task_id}/{name}"), 410)
