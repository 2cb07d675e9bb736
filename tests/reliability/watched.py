"""Orders whose every read is told, so that a test can count what is read twice."""

from exports.blocks import Block
from exports.contracts import Shard, TimeForm
from exports.kinds.orders import OrdersKind
from exports.telemetry import logs

_events = logs.events(__name__)


class WatchedOrders(OrdersKind):
    def read(self, shard: Shard, cursor: str, limit: int, form: TimeForm, masked: frozenset[str]) -> Block:
        _events.info("page.read", shardId=shard.id, cursor=cursor)
        return super().read(shard, cursor, limit, form, masked)
