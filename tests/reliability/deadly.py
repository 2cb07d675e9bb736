"""Orders of which one kills whoever reads it, as a row does that makes the kernel end the process."""

import datetime as dt
import itertools
import os
import signal

from exports.blocks import Block
from exports.contracts import Shard, TimeForm
from exports.kinds.orders import OrdersKind
from tests.reliability.installation import orders

DEADLY_DAY = dt.date(2026, 9, 2)
HARMLESS = 200
"""So many orders of the day come before it."""


def keys_of_the_day() -> list[int]:
    return [row[0] for row in orders() if (row[2] + dt.timedelta(hours=8)).date() == DEADLY_DAY]


LAST_HARMLESS_KEY, DEADLY_KEY = itertools.islice(keys_of_the_day(), HARMLESS - 1, HARMLESS + 1)


class DeadlyOrders(OrdersKind):
    def read(self, shard: Shard, cursor: str, limit: int, form: TimeForm, masked: frozenset[str]) -> Block:
        block = super().read(shard, cursor, limit, form, masked)
        if shard.id == DEADLY_DAY.isoformat() and int(cursor or 0) < DEADLY_KEY <= int(block.last_key or 0):
            os.kill(os.getpid(), signal.SIGKILL)
        return block
