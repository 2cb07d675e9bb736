"""The broker that carries hints: Dramatiq on Redis, hardened against a server that stops or hangs.

A hint that is lost, late or doubled does no harm; a consumer thread that dies silently does. Dramatiq 2.2.1 maps
only redis.ConnectionError, and not in `requeue`, so a time-out kills the consumer of the delay queue for ever
(https://github.com/Bogdanp/dramatiq/issues/894). Remove `_mapping` when a release maps both errors in all four.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from dramatiq.broker import Consumer
from dramatiq.brokers.redis import RedisBroker
from dramatiq.errors import ConnectionClosed
from dramatiq.middleware import Middleware
from redis.backoff import NoBackoff
from redis.retry import Retry

NAMESPACE = "export-hints"
HEARTBEAT_TIMEOUT_MS = 60_000
MAINTENANCE_CHANCE = 50_000
"""Of a million fetches, how many look for messages of dead workers: 16 s on an idle process, not 12 minutes."""
SOCKET_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
DELAYED_TIMEOUT_MS = 500
_DELAYED = ".DQ"
_HEALTH_CHECK_S = 30


def make_broker(
    url: str,
    *,
    middleware: Sequence[Middleware],
    namespace: str = NAMESPACE,
    heartbeat_timeout_ms: int = HEARTBEAT_TIMEOUT_MS,
    maintenance_chance: int = MAINTENANCE_CHANCE,
    socket_timeout_s: float = SOCKET_TIMEOUT_S,
) -> "HintBroker":
    """A broker that has not connected yet. `middleware` replaces Dramatiq's own list."""
    return HintBroker(  # type: ignore[no-untyped-call]  # RedisBroker.__init__ carries no types
        client=make_client(url, socket_timeout_s=socket_timeout_s),
        middleware=list(middleware),
        namespace=namespace,
        heartbeat_timeout=heartbeat_timeout_ms,
        maintenance_chance=maintenance_chance,
    )


def make_client(url: str, *, socket_timeout_s: float = SOCKET_TIMEOUT_S) -> redis.Redis:
    """A client that sends each command once: a repeated enqueue is a doubled message."""
    return redis.Redis.from_url(
        url,
        socket_timeout=socket_timeout_s,
        socket_connect_timeout=min(CONNECT_TIMEOUT_S, socket_timeout_s),
        health_check_interval=_HEALTH_CHECK_S,
        retry=Retry(NoBackoff(), 0),
    )


class HintBroker(RedisBroker):
    """RedisBroker whose consumers outlive a Redis that does not answer."""

    def waiting(self, queue_name: str) -> int:
        """Messages that no consumer has taken. `do_qsize` also counts those that a killed worker had taken."""
        return int(self.client.llen(f"{self.namespace}:{queue_name}"))

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        """Look rarely for messages that are sent again after a pause: an idle worker asks for each queue all the time."""
        if queue_name.endswith(_DELAYED):
            timeout = max(timeout, DELAYED_TIMEOUT_MS)
        return super().consume(queue_name, prefetch, timeout)

    @property
    def consumer_class(self) -> Callable[..., Consumer]:
        return _hardened(super().consumer_class)


def _hardened(base: Any) -> Callable[..., Consumer]:
    """`base` with redis errors as ConnectionClosed, which its thread answers by connecting again."""

    class HintConsumer(base):  # type: ignore[misc]  # the class is private to dramatiq and carries no types
        def __next__(self) -> Any:
            with _mapping():
                return super().__next__()

        def ack(self, message: Any) -> None:
            with _mapping():
                super().ack(message)

        def nack(self, message: Any) -> None:
            with _mapping():
                super().nack(message)

        def requeue(self, messages: Iterable[Any]) -> None:
            with _mapping():
                super().requeue(messages)

    return HintConsumer


@contextmanager
def _mapping() -> Iterator[None]:
    try:
        yield
    except (redis.ConnectionError, redis.TimeoutError) as error:
        raise ConnectionClosed(error) from error
