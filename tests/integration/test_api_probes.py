"""Probes, metrics and the published schema."""

import re
import socket
import time
from pathlib import Path

import jsonschema
import pytest
import yaml
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from exports.kinds.orders import OrdersKind
from exports.messages import CAUSES, PROBLEMS
from exports.state.replies import WorkerSign
from exports.state.store import store
from tests.conftest import exports_settings
from tests.integration.api_client import EXPORTS, alice, caller, submit, tokens, world  # noqa: F401
from tests.integration.api_world import World, succeeded
from tests.kinds import WordsKind

SCHEMA = Path(__file__).parents[2] / "docs" / "openapi.yaml"


def published() -> str:
    document = SchemaGenerator(urlconf="exports.api.urls").get_schema(request=None, public=True)
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=120)


def test_healthz_answers_without_redis(tokens: None) -> None:
    with exports_settings(redis_url="redis://127.0.0.1:1/0"):
        assert Client().get("/healthz").json() == {"status": "ok"}


def test_readyz_follows_redis(world: World) -> None:
    assert Client().get("/readyz").json() == {"status": "ok"}
    with exports_settings(redis_url="redis://127.0.0.1:1/0"):
        response = Client().get("/readyz")
    assert (response.status_code, response["Retry-After"], response.json()["code"]) == (503, "5", "state_unavailable")


def test_readyz_does_not_wait_for_a_redis_that_hangs(tokens: None) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        exports_settings(redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0"),
    ):
        begun = time.monotonic()
        assert Client().get("/readyz").status_code == 503
        assert time.monotonic() - begun < 2


def test_metrics_count_what_happened(world: World, alice: Client) -> None:
    succeeded(world, alice)
    world.fail(submit(alice, requestId="r-2").json()["taskId"])
    text = caller("ops").get("/metrics").content.decode()
    for state, count in {"queued": 2, "running": 2, "succeeded": 1, "failed": 1, "cancelled": 0}.items():
        assert f'export_task_total{{state="{state}"}} {count}.0\n' in text
    assert "export_rows_processed_total 30.0\n" in text
    assert 'export_task_duration_seconds_count{format="csv"} 2.0\n' in text
    assert 'export_task_duration_seconds_bucket{format="csv",le="+Inf"} 2.0\n' in text
    assert "# TYPE export_task_total counter" in text
    assert "# TYPE export_task_duration_seconds histogram" in text
    assert "python_info" in text


def test_metrics_tell_queues_and_workers(world: World, alice: Client) -> None:
    submit(alice)
    world.begin(submit(alice, requestId="r-2").json()["taskId"])
    for name, rss_mb in (("small", 90), ("large", 120)):
        store().beat(name, WorkerSign("lanes", busy=True, spool="s", rss_mb=rss_mb))
    store().forget_worker("small", reason="slices")
    text = caller("ops").get("/metrics").content.decode()
    for queue, tasks in {"plan": 1, "fast": 1, "normal": 0, "slow": 0, "finish": 0}.items():
        assert f'export_queue_length{{queue="{queue}"}} {tasks}.0\n' in text
    for reason, count in {"slices": 1, "memory": 0, "died": 0}.items():
        assert f'export_worker_restarts_total{{reason="{reason}"}} {count}.0\n' in text
    assert f'export_worker_rss_bytes{{group="lanes"}} {float(120 * 2**20)!r}\n' in text.replace(
        "1.2582912e+08", "125829120.0"
    )


def test_buckets_of_the_histogram_never_fall(world: World, alice: Client) -> None:
    succeeded(world, alice)
    text = caller("ops").get("/metrics").content.decode()
    counts = [float(count) for count in re.findall(r'duration_seconds_bucket\{format="csv",le="[^"]*"\} (\S+)', text)]
    assert len(counts) == 17
    assert counts == sorted(counts) and counts[-1] == 1.0


def test_metrics_without_redis_fail_instead_of_showing_zeros(world: World) -> None:
    with exports_settings(redis_url="redis://127.0.0.1:1/0"):
        assert caller("ops").get("/metrics").status_code == 503


def test_the_committed_schema_is_the_published_one(tokens: None) -> None:
    assert SCHEMA.read_text("utf-8") == published()


def test_the_schema_tells_the_columns_of_every_configured_kind(tokens: None) -> None:
    with exports_settings(kinds=("exports.kinds.orders.OrdersKind", "tests.kinds.WordsKind")):
        told = yaml.safe_load(published())["paths"][f"{EXPORTS}/{{task_id}}/download"]["get"]["description"]
    named = re.findall(r"^\| `(\w+)` \|", told, re.MULTILINE)
    assert named == [column.name for column in (*OrdersKind.columns, *WordsKind.columns)]
    personal = re.findall(r"^\| `(\w+)` .*personal data", told, re.MULTILINE)
    assert personal == ["customer_name", "phone", "address"]


def test_the_schema_is_served_to_known_callers(tokens: None, alice: Client) -> None:
    response = alice.get("/api/schema/")
    assert response.status_code == 200
    assert set(yaml.safe_load(response.content)["paths"]) >= {EXPORTS, f"{EXPORTS}/{{task_id}}", "/healthz", "/metrics"}


def test_every_operation_names_its_refusals(tokens: None) -> None:
    operations = [
        (method, path, operation)
        for path, methods in yaml.safe_load(published())["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(operations) >= 14
    for method, path, operation in operations:
        assert operation["summary"], (method, path)
        refusals = {code for code in operation["responses"] if code >= "400"}
        assert refusals >= ({"401", "403", "503"} if operation.get("security") else set()), (method, path)


def resolved(name: str) -> dict[str, object]:
    document = yaml.safe_load(published())
    return {"$ref": f"#/components/schemas/{name}", "components": document["components"]}


@pytest.mark.parametrize("state", ["queued", "failed", "succeeded"])
def test_answers_keep_to_the_schema(world: World, alice: Client, state: str) -> None:
    made = submit(alice)
    task_id = made.json()["taskId"]
    {"queued": lambda _: None, "failed": world.fail, "succeeded": world.run}[state](task_id)
    task = alice.get(f"{EXPORTS}/{task_id}").json()
    jsonschema.validate(made.json(), resolved("Submitted"))
    jsonschema.validate(task, resolved("Task"))
    jsonschema.validate(alice.get(EXPORTS).json(), resolved("TaskList"))
    assert list(task) == list(yaml.safe_load(published())["components"]["schemas"]["Task"]["properties"])


def test_the_schema_lists_every_code() -> None:
    schemas = yaml.safe_load(published())["components"]["schemas"]
    listed = {name: set(schema["enum"]) for name, schema in schemas.items() if "enum" in schema}
    assert set(PROBLEMS) in listed.values()
    assert set(CAUSES) in listed.values()
