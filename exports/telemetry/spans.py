"""Spans of OpenTelemetry, in the trace that `trace` carries. Off until `start`: then nothing of it is even imported.

    with spans.span("page"):
        …

A span becomes the current trace of its block, so that log lines, hints and callbacks below it name it. Sent by a
thread of its own, as the standard variables `OTEL_*` say: a kill loses the last few seconds of them, nothing else.
No cell of any row and no text of an exception is ever written: an error is its code.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from exports.errors import ExportError, SettingInvalid
from exports.telemetry import trace

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Tracer

_FLUSH_S = 2.0
"""A collector that does not answer keeps no process from its end for longer."""
_NOTHING: AbstractContextManager[None] = nullcontext()

_provider: "TracerProvider | None" = None
_tracer: "Tracer | None" = None


def start(processor: "SpanProcessor | None" = None) -> None:
    """Record from now on. processor: what gets the spans; None: a batch over OTLP.

    Raises: SettingInvalid when the packages are missing.
    """
    global _provider, _tracer  # noqa: PLW0603  one for the process, like a logger
    try:
        from opentelemetry.sdk.trace import TracerProvider

        processor = processor or _over_otlp()
    except ImportError as error:
        raise SettingInvalid("tracing", "needs the packages of requirements/otel.txt") from error
    _provider = TracerProvider(shutdown_on_exit=False)
    _provider.add_span_processor(processor)
    _tracer = _provider.get_tracer("exports")


def stop() -> None:
    """Send what is left, and record no more."""
    global _provider, _tracer  # noqa: PLW0603
    if _provider is not None:
        sender = threading.Thread(target=_provider.shutdown, daemon=True)
        sender.start()
        sender.join(_FLUSH_S)
    _provider = _tracer = None


def _over_otlp() -> "SpanProcessor":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(OTLPSpanExporter())


def span(name: str, *, parent: str | None = None, **facts: str | int) -> AbstractContextManager[None]:
    """A span for the block. parent: a traceparent, where it is not the current one of this thread."""
    if _tracer is None:
        return _NOTHING if parent is None else trace.tracing(parent)
    return _recorded(_tracer, name, parent, facts)


def failed(code: str) -> None:
    """Mark the current span as an error that the block itself takes care of."""
    if _tracer is not None:
        from opentelemetry.trace import Status, StatusCode, get_current_span

        get_current_span().set_status(Status(StatusCode.ERROR, code))


@contextmanager
def _recorded(tracer: "Tracer", name: str, parent: str | None, facts: dict[str, str | int]) -> Iterator[None]:
    with tracer.start_as_current_span(
        name,
        context=_context_of(parent) if parent else None,
        attributes={f"export.{key}": value for key, value in facts.items()},
        record_exception=False,
        set_status_on_exception=False,
    ) as recorded:
        found = recorded.get_span_context()
        named = f"00-{found.trace_id:032x}-{found.span_id:016x}-{found.trace_flags:02x}"
        # With OTEL_SDK_DISABLED a span without a parent has no ids: the trace goes on as it was.
        with trace.tracing(named) if found.is_valid else _NOTHING:
            try:
                yield
            except Exception as error:
                failed(error.code if isinstance(error, ExportError) else type(error).__name__)
                raise


def _context_of(traceparent: str) -> "Context":
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    _, trace_id, span_id, flags = traceparent.split("-")
    remote = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))
    return set_span_in_context(NonRecordingSpan(remote))
