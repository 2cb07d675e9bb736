"""The real service over real Valkey and SQLite, and the steps of the pipeline by hand: tasks in any state."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dramatiq
import redis
from django.test import Client
from dramatiq.brokers.stub import StubBroker

from exports import service
from exports.conf import conf
from exports.contracts import ExportRequest, Principal, Right, State, Step
from exports.state.keys import TaskRef
from exports.state.replies import Claim
from exports.state.store import store
from exports.views import TaskView
from tests.databases import OrdersDatabase, utc

OPERATOR = Principal("ops", frozenset(Right))
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Nowhere(StubBroker):
    def waiting(self, queue_name: str) -> int:
        self.declare_queue(queue_name)
        return self.queues[queue_name].qsize()


@contextmanager
def stub_broker() -> Iterator[StubBroker]:
    """Hints go nowhere: the tests take the steps themselves."""
    before = dramatiq.broker.global_broker
    broker = Nowhere()
    dramatiq.set_broker(broker)
    try:
        yield broker
    finally:
        dramatiq.broker.global_broker = before


class World:
    def __init__(self, client: "redis.Redis", orders: OrdersDatabase) -> None:
        self.redis = client
        self.orders = orders
        orders.insert({"id": number, "created_at": utc(f"2026-09-14 12:00:{number:02d}")} for number in range(1, 31))

    def task_ids(self) -> list[str]:
        return sorted(key.decode().rsplit(":", 1)[1] for key in self.redis.scan_iter("export:task:*"))

    def requests(self) -> list[ExportRequest]:
        return [self.read(task_id).request for task_id in self.task_ids()]

    def read(self, task_id: str) -> TaskView:
        return service.read_task(task_id, principal=OPERATOR)

    def file(self, task_id: str) -> Path:
        return conf().store_dir / self.read(task_id).object_key

    def run(self, task_id: str) -> str:
        """Do the whole task."""
        from exports.pipeline import plan, steps

        steps.run_slice(Step.PLAN, plan.plan_task)
        assert self.read(task_id).state is State.SUCCEEDED
        return task_id

    def fail(self, task_id: str, code: str = "database_timeout") -> str:
        """Fail the task in its first page, as a worker would."""
        claim = self.begin(task_id)
        assert store().fail(claim, code, retryable=True) == "failed"
        return task_id

    def begin(self, task_id: str) -> Claim:
        """Plan the task and hold its first shard, as a worker that has just begun does."""
        from exports.pipeline import plan, steps

        ref = self.ref(task_id)
        request = self.read(task_id).request
        with steps.holding(self._claim(ref, request, Step.PLAN), deadline=float("inf")) as held:
            plan.plan_task(held)
        return self._claim(ref, request, Step.SHARD)

    def ref(self, task_id: str) -> TaskRef:
        ref = store().ref(task_id)
        assert ref is not None
        return ref

    def _claim(self, ref: TaskRef, request: ExportRequest, step: Step) -> Claim:
        from exports.pipeline import steps

        claim = steps.claim_step(ref, request, step)
        assert isinstance(claim, Claim)
        return claim

    def dump(self) -> dict[bytes, Any]:
        """Every key with its bytes: equal before and after a refusal."""
        return {key: self.redis.dump(key) for key in self.redis.scan_iter("export:*")}


def succeeded(world: World, client: Client, **changes: Any) -> str:
    from tests.integration.api_client import submit

    return world.run(submit(client, **changes).json()["taskId"])
