"""A connection to the Redis database of the state, and the running of scripts on it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

import redis
from redis.backoff import NoBackoff
from redis.commands.core import Script as RedisScript
from redis.retry import Retry

from exports.conf import Conf
from exports.errors import StateUnavailable
from exports.state import keys, replies, scripts
from exports.state.keys import TaskRef

_DAY_MS = 86_400_000


@contextmanager
def translated() -> Iterator[None]:
    """Errors of Redis as StateUnavailable."""
    try:
        yield
    except redis.RedisError as error:
        raise StateUnavailable(type(error).__name__) from error


def connect_to_ask(url: str) -> "redis.Redis":
    """A client for the question whether Redis answers: no, after two seconds at most."""
    return redis.Redis.from_url(url, socket_timeout=0.9, socket_connect_timeout=0.9, retry=Retry(NoBackoff(), 0))


def connect(settings: Conf) -> "redis.Redis":
    """A client that answers or fails within seconds. A repeated script is harmless, so one retry is allowed."""
    return redis.Redis.from_url(
        settings.redis_url,
        decode_responses=True,
        socket_timeout=5,
        socket_connect_timeout=2,
        retry=Retry(NoBackoff(), 1),
        retry_on_error=[redis.ConnectionError, redis.TimeoutError],
        health_check_interval=30,
    )


class Connection:
    """Runs scripts. Safe to share between threads."""

    def __init__(self, client: "redis.Redis", settings: Conf) -> None:
        self._redis = client
        self._conf = settings
        self._scripts: dict[str, RedisScript] = {}

    def now_ms(self) -> int:
        """The server's clock. Raises: StateUnavailable."""
        with translated():
            return replies.clock_ms(*self._redis.time())

    def _run(self, name: str, ref: TaskRef, **values: object) -> list[str]:
        script = scripts.load(name)
        names, arguments = self._bound(script, ref, values)
        with translated():
            return cast(list[str], self._registered(script)(keys=names, args=arguments))

    def _run_all(self, name: str, refs: Sequence[TaskRef]) -> list[list[str]]:
        """A script for each of several tasks, in one round trip; not at one moment."""
        script = scripts.load(name)
        with translated(), self._redis.pipeline(transaction=False) as pipe:
            for ref in refs:
                names, arguments = self._bound(script, ref, {})
                self._registered(script)(keys=names, args=arguments, client=pipe)
            return cast(list[list[str]], pipe.execute())

    def _bound(self, script: scripts.Script, ref: TaskRef, values: Mapping[str, object]) -> tuple[list[str], list[str]]:
        common: dict[str, object] = {
            "id": ref.id,
            "owner": ref.owner,
            "weight": self._conf.weight_of(ref.owner),
            "lease_ms": self._conf.lease_ms,
            "keep_ms": self._conf.state_days * _DAY_MS,
            "cleanup_member": ref.cleanup_member,
        }
        given = {name: value for name, value in common.items() if name in script.arguments} | dict(values)
        return script.bind(keys.names(ref, endpoint=str(values.get("endpoint", ""))), given)

    def _registered(self, script: scripts.Script) -> RedisScript:
        if script.name not in self._scripts:
            self._scripts[script.name] = self._redis.register_script(script.source)
        return self._scripts[script.name]
