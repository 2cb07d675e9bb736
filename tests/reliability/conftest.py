"""What the sweeps stand on: one world, its orders, and the undisturbed file of them."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from exports.contracts import Format
from exports.kinds.orders import sample
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase
from tests.reliability.sweeping import Sample
from tests.reliability.world import World, submit_and_work_off

ROWS = 40
FAST = {
    "page_rows": 7,
    "page_rows_min": 2,
    "slice_ms": 5000,
    "lease_ms": 2000,
    "renew_every_ms": 500,
    "retry_delays_ms": (5, 10, 15),
    "cancel_grace_ms": 100,
    "sweep_every_ms": 50,
}


@pytest.fixture(scope="session")
def every(request: pytest.FixtureRequest) -> Sample:
    given = request.config.getoption
    return Sample(given("--reliability-seed"), given("--reliability-every"), until=given("--reliability-until"))


@pytest.fixture
def world(request: pytest.FixtureRequest, desk: Path, redis_db: redis.Redis) -> Iterator[World]:
    """40 orders of three days in pages of 7, in SQLite or the database that is the fixture's parameter.

    One export in this process warms what its children inherit.
    """
    orders: OrdersDatabase = request.getfixturevalue(f"{getattr(request, 'param', 'sqlite')}_orders")
    orders.insert_rows(sample.generate(ROWS, seed=1, days=3, first_day=dt.date(2026, 9, 1)))
    with exports_settings(**FAST):
        world = World(desk, state=redis_db)
        with world.logged():
            world.here(submit_and_work_off)
            yield world


def undisturbed(world: World, output: Format) -> bytes:
    """The bytes of an export that nothing disturbs."""
    world.output = output
    world.reset()
    assert not (wrong := world.here(submit_and_work_off)), wrong
    return pipeline.read_file(world.task_id)
