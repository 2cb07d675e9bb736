"""Real processes over a PostgreSQL database whose role may only SELECT."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import services
from tests.conftest import running as started
from tests.processes import Site, running

Open = Callable[..., Site]


@pytest.fixture
def open_site(orders_url: str) -> Iterator[Open]:
    """Makes a site with a Valkey of its own that a test may kill; settings as in `Site`."""
    with ExitStack() as stack:

        def open_one(**settings: str) -> Site:
            folder = Path(
                stack.enter_context(tempfile.TemporaryDirectory(prefix="exports-", ignore_cleanup_errors=True))
            )
            (folder / "valkey").mkdir()
            valkey = stack.enter_context(started(lambda _: services.start_valkey(folder / "valkey")))
            site = Site(folder, valkey=valkey, database_url=settings.pop("database_url", orders_url), **settings)
            return stack.enter_context(running(site))

        yield open_one
