"""Fixtures that all tests share: real servers, one of each in a session."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import redis
from django.conf import settings
from django.test import override_settings

from tests import services

S = TypeVar("S", bound=services.Service)


@contextmanager
def running(start: Callable[[Path], S]) -> Iterator[S]:
    """A server in a folder of its own, outside pytest's, which only its owner may enter."""
    with tempfile.TemporaryDirectory(prefix="exports-", ignore_cleanup_errors=True) as folder:
        service = start(Path(folder))
        yield service
        service.stop()


@pytest.fixture(scope="session")
def valkey() -> Iterator[services.Valkey]:
    with running(services.start_valkey) as service:
        yield service


@pytest.fixture
def redis_db(valkey: services.Valkey) -> Iterator[redis.Redis]:
    """A client of database 1, flushed; `settings.EXPORTS["redis_url"]` names the same database."""
    with redis.Redis.from_url(valkey.url(1)) as client:
        client.flushall()
        with exports_settings(redis_url=valkey.url(1)):
            yield client


@contextmanager
def exports_settings(**changes: Any) -> Iterator[None]:
    """Settings of the package changed for a while; the others stay."""
    with override_settings(EXPORTS={**settings.EXPORTS, **changes}):
        yield
