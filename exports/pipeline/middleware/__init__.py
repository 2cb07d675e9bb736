"""What happens around every message, one concern a file.

Hooks before a message run from the first to the last, hooks after it from the last to the first.
"""

from collections.abc import Callable, Sequence

from dramatiq.middleware import Middleware, Retries, TimeLimit

from exports.pipeline.middleware.broker_heartbeat import BrokerHeartbeat
from exports.pipeline.middleware.db_connections import DbConnections
from exports.pipeline.middleware.log_context import LogContext
from exports.pipeline.middleware.recycle_worker import RecycleWorker
from exports.pipeline.middleware.stop_signal import StopSignal
from exports.pipeline.middleware.trace_context import TraceContext

TIME_LIMIT_MS = 6 * 3_600_000
"""A backstop far above the longest upload: it cannot interrupt a call into C. Real limits stand at the source."""


def for_workers(
    *,
    leave: Callable[[str], None],
    slices: int,
    rss_mb: int,
    stop: Callable[[], None] = lambda: None,
    extra: Sequence[Middleware] = (),
    heartbeat_s: float = 10.0,
) -> list[Middleware]:
    """The list of a worker.

    leave: told why when the process should be started again. stop: called when the worker begins to stop; it must
    return at once. extra: such as the sweep; between the heartbeat and the connections.
    """
    return [
        BrokerHeartbeat(every_s=heartbeat_s),
        *extra,
        RecycleWorker(leave=leave, slices=slices, rss_mb=rss_mb),
        # Closes last, after everything that may have used the database.
        DbConnections(),
        # Before Retries, so that a message sent again keeps its trace.
        TraceContext(),
        LogContext(),
        _retries(),
        StopSignal(stop),
        # Last: armed just before the actor, disarmed first, so that it never strikes inside another hook
        # (https://github.com/Bogdanp/dramatiq/issues/445).
        TimeLimit(time_limit=TIME_LIMIT_MS),
    ]


def for_sending() -> list[Middleware]:
    """The list of a process that only sends; it knows the options of actors, should it import any."""
    return [TraceContext(), _retries(), TimeLimit(time_limit=TIME_LIMIT_MS)]


def _retries() -> Retries:
    """A net for errors that no step has handled; the pauses that count are kept in the task's state."""
    return Retries(max_retries=3, min_backoff=1000, max_backoff=16_000)
