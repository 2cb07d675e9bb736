"""The trace travels with the message."""

from typing import Any

from dramatiq import Broker, Message, Middleware
from dramatiq.broker import MessageProxy

from exports.telemetry import trace

_OPTION = "traceparent"


class TraceContext(Middleware):
    """Writes the sender's trace into the message and makes it current around the actor.

    A hint that the sweep sends has none: the step takes the trace of the task that it claims.
    """

    def before_enqueue(self, broker: Broker, message: "Message[Any]", delay: int | None) -> None:
        traceparent = trace.current.get()
        if traceparent is not None:
            message.options.setdefault(_OPTION, traceparent)

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        trace.current.set(trace.parse_traceparent(message.options.get(_OPTION)))

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        trace.current.set(None)

    def after_skip_message(self, broker: Broker, message: MessageProxy) -> None:
        trace.current.set(None)
