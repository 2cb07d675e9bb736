"""The broker that carries hints: Dramatiq on Redis, hardened against a server that stops or hangs.

A hint that is lost, late or doubled does no harm; a consumer thread that dies silently does. Dramatiq 2.2.1 maps
only redis.ConnectionError, and not in `requeue`, so a time-out kills the consumer of the delay queue for ever
(https://github.com/Bogdanp/dramatiq/issues/894). Remove `_mapping` when a release maps both errors in all four.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from dramatiq.broker import Consumer
from dramatiq.brokers.redis import RedisBroker
from dramatiq.common import q_name
from dramatiq.errors import ConnectionClosed
from dramatiq.message import Message
from dramatiq.middleware import Middleware
from redis.backoff import NoBackoff
from redis.retry import Retry

NAMESPACE = "export-hints"
HEARTBEAT_TIMEOUT_MS = 60_000
MAINTENANCE_CHANCE = 50_000
"""Of a million fetches, how many look for messages of dead workers: 20 s on an idle process, not 12 minutes."""
SOCKET_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
_HEALTH_CHECK_S = 30
_RING_LIFE_S = 5
_AT_WORK_S = 0.1
"""How often a consumer looks whether its process has finished what it does."""


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
    return HintBroker(
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
    """RedisBroker whose consumers outlive a Redis that does not answer, and are rung for instead of looking often.

    Dramatiq's own consumer sleeps between two looks: to be quick it must look often. Each message pushes an element
    to its queue's bell; a consumer that found nothing blocks on the bell. A ring that is lost costs one waiting time.
    """

    def __init__(self, **options: Any) -> None:
        self._consumers: dict[str, Any] = {}
        self.taking = threading.Lock()
        super().__init__(**options)  # type: ignore[no-untyped-call]  # carries no types

    def waiting(self, queue_name: str) -> int:
        """Messages that no consumer has taken. `do_qsize` also counts those that a killed worker had taken."""
        return int(self.client.llen(f"{self.namespace}:{queue_name}"))

    def bell(self, queue_name: str) -> str:
        return f"{self.namespace}:{queue_name}.bell"

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        sent = super().enqueue(message, delay=delay)
        with self.client.pipeline(transaction=False) as pipeline:
            pipeline.rpush(self.bell(sent.queue_name), "")
            pipeline.expire(self.bell(sent.queue_name), _RING_LIFE_S)
            pipeline.execute()
        return sent

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        self._consumers[queue_name] = consumer = super().consume(queue_name, prefetch, timeout)
        return consumer

    @property
    def consumer_class(self) -> Callable[..., Consumer]:
        return _hardened(super().consumer_class)

    def at_work(self) -> bool:
        """Whether this process has taken a message: another process does the next one sooner, of whichever queue it is.

        What a consumer of delayed messages holds waits for its time, and is no work yet.
        """
        consumers = tuple(self._consumers.values())
        return any(
            found.outstanding_message_count for found in consumers if found.queue_name == q_name(found.queue_name)
        )


def _hardened(base: Any) -> Callable[..., Consumer]:
    """`base` that waits for its bell, with redis errors as ConnectionClosed, which its thread answers by connecting again."""

    class HintConsumer(base):  # type: ignore[misc]  # the class is private to dramatiq and carries no types
        def __init__(self, broker: HintBroker, queue_name: str, prefetch: int, timeout: int) -> None:
            super().__init__(broker, queue_name, prefetch, timeout=0)
            self._bell = broker.bell(queue_name)
            self._wait_s = timeout / 1000

        def __next__(self) -> Any:
            with _mapping():
                with self.broker.taking:  # consumers that are rung at one moment must not take a message each
                    at_work = not self.message_cache and self.broker.at_work()
                    message = None if at_work else super().__next__()
                if at_work:
                    time.sleep(_AT_WORK_S)
                elif message is None:
                    self.broker.client.blpop([self._bell], timeout=self._wait_s)
                return message

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
