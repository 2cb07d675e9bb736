"""Spans: one trace from the request to the callback, over retries, threads and processes; nothing at all when off."""

import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from exports.errors import SourceUnavailable
from exports.pipeline import notify
from exports.telemetry import spans, trace
from tests import pipeline, services
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc
from tests.integration.api_client import EXPORTS, caller, submit, tokens, world  # noqa: F401
from tests.integration.api_world import World
from tests.kinds import FlakyOrders
from tests.processes import Site, running
from tests.receiver import OPEN, Receiver, receiving

ROOT = Path(__file__).resolve().parents[2]
DAYS = ("2026-09-14", "2026-09-15")
HEADER = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


class Recorded:
    """What was recorded so far."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def all(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    def of(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all() if span.name == name]

    def parent_of(self, span: ReadableSpan) -> ReadableSpan | None:
        """None for one that this process did not record."""
        wanted = span.parent.span_id if span.parent else 0
        return next((found for found in self.all() if found.context and found.context.span_id == wanted), None)

    def trace_ids(self) -> set[str]:
        return {f"{span.context.trace_id:032x}" for span in self.all() if span.context}


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    exporter = InMemorySpanExporter()
    spans.start(SimpleSpanProcessor(exporter))
    yield Recorded(exporter)
    spans.stop()


@pytest.fixture
def orders(desk: Path, sqlite_orders: OrdersDatabase) -> OrdersDatabase:
    """30 orders on the first of the two days and one on the second."""
    sqlite_orders.insert({"id": number, "created_at": utc(f"2026-09-14 04:00:{number:02d}")} for number in range(1, 31))
    sqlite_orders.add(31, created_at=utc("2026-09-15 04:00:00"))
    return sqlite_orders


def test_one_trace_leads_from_the_request_to_the_callback(world: World, recorded: Recorded) -> None:
    with receiving() as receiver, exports_settings(callbacks=(receiver.endpoint(),), **OPEN):
        task_id = submit(caller("alice", traceparent=HEADER)).json()["taskId"]
        world.run(task_id)
        notify.deliver_due()
        [received] = receiver.received
    assert {span.name for span in recorded.all()} == {
        *("POST Exports", "plan", "shard", "page", "commit", "render", "upload", "callback"),
    }
    assert recorded.trace_ids() == {"a" * 32}
    [request] = recorded.of("POST Exports")
    assert request.parent and f"{request.parent.span_id:016x}" == "b" * 16
    for name in ("plan", "shard", "render", "upload", "callback"):
        for span in recorded.of(name):
            assert recorded.parent_of(span) is request, name
            assert span.attributes and span.attributes["export.task_id"] == task_id
    for name in ("page", "commit"):
        for span in recorded.of(name):
            found = recorded.parent_of(span)
            assert found and found.name == "shard"
    assert len(recorded.of("commit")) == 1
    [callback] = recorded.of("callback")
    assert callback.context and received.headers["traceparent"].split("-")[2] == f"{callback.context.span_id:016x}"


def test_a_retry_is_another_span_of_the_same_trace_and_the_failed_one_says_why(
    orders: OrdersDatabase, recorded: Recorded
) -> None:
    faults = [SourceUnavailable("database_timeout")]

    def fault(*_: object) -> None:
        if faults:
            raise faults.pop()

    FlakyOrders.before_read.append(fault)
    task_id = pipeline.submit(*DAYS)
    assert pipeline.work(task_id).state == "succeeded"
    statuses = [(span.status.status_code, span.status.description) for span in recorded.of("shard")]
    assert sorted(statuses, key=str) == [
        (StatusCode.ERROR, "database_timeout"),
        (StatusCode.UNSET, None),
        (StatusCode.UNSET, None),
    ]
    assert recorded.trace_ids() == {pipeline.view(task_id).trace_id}


def test_a_request_that_the_service_could_not_answer_is_an_error_and_a_refused_one_is_not(
    world: World, recorded: Recorded
) -> None:
    client = caller("alice")
    with exports_settings(redis_url="redis://127.0.0.1:1/1"):
        assert submit(client).status_code == 503
    assert client.get(f"{EXPORTS}/exp_none").status_code == 404
    found = [(span.name, span.status.status_code, span.status.description) for span in recorded.all()]
    assert found == [
        ("POST Exports", StatusCode.ERROR, "state_unavailable"),
        ("GET Task", StatusCode.UNSET, None),
    ]


def test_a_disabled_sdk_leaves_the_trace_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    spans.start(SimpleSpanProcessor(InMemorySpanExporter()))
    try:
        with spans.span("POST Exports"):
            assert trace.current.get() is None
        with spans.span("shard", parent=HEADER), spans.span("page"):
            assert trace.current.get() == HEADER
        with trace.tracing(HEADER), spans.span("page"):
            assert trace.current.get() == HEADER
    finally:
        spans.stop()


def test_no_text_of_an_exception_is_written(orders: OrdersDatabase, recorded: Recorded) -> None:
    FlakyOrders.before_read.append(_quote_a_row)
    assert pipeline.work(pipeline.submit(*DAYS)).state == "failed"
    assert "Li Lei" not in str([span.to_json() for span in recorded.all()])
    assert {span.status.description for span in recorded.of("page")} == {"ValueError"}
    assert [span.events for span in recorded.all() if span.events] == []


def _quote_a_row(*_: object) -> None:
    raise ValueError("customer Li Lei")


def test_the_parts_of_an_upload_belong_to_it_though_threads_send_them(
    desk: Path, s3: services.S3, recorded: Recorded
) -> None:
    with exports_settings(**s3.settings(prefix=f"tracing/{uuid.uuid4().hex}")):
        assert pipeline.work(pipeline.submit("2026-09-01", "2026-09-01", kind="bulk")).state == "succeeded"
    [upload] = recorded.of("upload")
    parts = recorded.of("part")
    assert sorted(span.attributes["export.number"] for span in parts if span.attributes) == [1, 2, 3]
    assert [recorded.parent_of(span) for span in parts] == [upload] * 3


def test_spans_of_several_processes_arrive_over_otlp_when_they_stop(
    orders: OrdersDatabase, desk: Path, valkey: services.Valkey
) -> None:
    settings = {"TRACING": "on", "PAGE_ROWS": "5", "PAGE_ROWS_MIN": "5", "FAST_ROWS": "0"}
    with (
        receiving() as collector,
        running(Site(desk, valkey=valkey, database_url=f"sqlite:///{orders.settings['NAME']}", **settings)) as site,
    ):
        # Nothing is sent before the end: what arrives was flushed by it.
        site.environment |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url(""), "OTEL_BSP_SCHEDULE_DELAY": "600000"}
        site.start_web()
        for group in ("fast", "lanes"):
            site.start_worker(group)
        task_id = site.submit(*DAYS)
        trace_id = site.wait(task_id)["traceId"]
        for process in site.processes:
            process.terminate()
        assert [process.wait(20) for process in site.processes] == [0, 0, 0]
        services_seen, found = _arrived(collector)
    assert services_seen == {"order-exports"}
    assert {name for name, of in found if of == trace_id} >= {
        *("POST Exports", "plan", "shard", "page", "commit", "render", "upload"),
    }


def _arrived(collector: Receiver) -> tuple[set[str], set[tuple[str, str]]]:
    """Names of services, and (span, its trace id)."""
    names, found = set(), set()
    for received in collector.received:
        assert received.path == "/v1/traces"
        for of_service in ExportTraceServiceRequest.FromString(received.body).resource_spans:
            facts = {fact.key: fact.value.string_value for fact in of_service.resource.attributes}
            names.add(facts["service.name"])
            found |= {(span.name, span.trace_id.hex()) for scope in of_service.scope_spans for span in scope.spans}
    return names, found


def test_a_collector_that_hangs_keeps_no_process_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as collector:
        collector.answers(collector.hang)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url(""))
        spans.start()
        with spans.span("page"):
            pass
        began = time.monotonic()
        spans.stop()
        assert time.monotonic() - began < 3


def test_when_off_nothing_is_imported_and_a_page_costs_nothing() -> None:
    code = "import exports.telemetry.spans, exports.storage.multipart, sys; print('opentelemetry' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True) == "False\n"
    assert spans.span("page") is spans.span("commit", rows=2)
    began = time.perf_counter()
    for _ in range(10_000):
        with spans.span("page"):
            pass
    assert (time.perf_counter() - began) / 10_000 < 20e-6


def test_when_off_the_trace_goes_on_all_the_same() -> None:
    with spans.span("plan", parent=HEADER):
        assert trace.current.get() == HEADER
    assert trace.current.get() is None
