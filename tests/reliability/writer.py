"""A program that changes orders while they are exported, and knows when each change was committed."""

import datetime as dt
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.databases import DEFAULTS, OrdersDatabase

FIRST = dt.date(2026, 9, 1)
DAYS = 3
IDS_A_DAY = 400
"""Ids of one day. At first every second one is taken: the others come late."""
START = float("-inf")
PAUSE_S = 0.002
"""Between two changes, so that the export gets on where a commit takes no time."""


@dataclass(frozen=True, slots=True)
class Version:
    """remark: None for a row that is not there. Seen by nobody before `began`, by everybody after `ended`."""

    remark: str | None
    began: float
    ended: float


@dataclass(slots=True)
class History:
    """Every version of every order, by id."""

    versions: dict[int, list[Version]] = field(default_factory=dict)

    def note(self, order_id: int, remark: str | None, began: float) -> None:
        self.versions.setdefault(order_id, [Version(None, START, START)]).append(
            Version(remark, began, time.monotonic())
        )

    def now(self, order_id: int) -> str | None:
        return self.versions[order_id][-1].remark if order_id in self.versions else None

    def possible(self, order_id: int, since: float, until: float) -> set[str | None]:
        """What a read within this time may have found."""
        found = self.versions.get(order_id, [])
        following = [*found[1:], Version(None, float("inf"), float("inf"))]
        seen = {
            version.remark
            for version, after in zip(found, following, strict=True)
            if version.began <= until and after.ended >= since
        }
        return seen or {None}

    def count(self, day: dt.date, since: float, until: float, *, largest: int) -> tuple[int, int]:
        """Fewest and most rows of a day that a count within this time may have found."""
        states = [
            self.possible(order_id, since, until)
            for order_id in self.versions
            if order_id <= largest and day_of(order_id) == day
        ]
        return sum(None not in state for state in states), sum(state != {None} for state in states)


def day_of(order_id: int) -> dt.date:
    """Orders behind the last day are of the last day."""
    return FIRST + dt.timedelta(days=min(order_id // IDS_A_DAY, DAYS - 1))


def order(order_id: int, remark: str) -> dict[str, object]:
    noon = dt.datetime.combine(day_of(order_id), dt.time(4), dt.UTC)
    return {**DEFAULTS, "id": order_id, "created_at": noon + dt.timedelta(milliseconds=order_id), "remark": remark}


class Writer:
    """Updates, deletes and inserts through a connection of its own; one change, one transaction."""

    def __init__(self, database: OrdersDatabase) -> None:
        self.history = History()
        self._database = database
        self._number = 0
        taken = range(2, DAYS * IDS_A_DAY, 2)
        began = time.monotonic()
        database.insert(order(order_id, "v0") for order_id in taken)
        for order_id in taken:
            self.history.note(order_id, "v0", began)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        stop = threading.Event()
        failure: list[BaseException] = []

        def run() -> None:
            try:
                while not stop.is_set():
                    self._change()
                    time.sleep(PAUSE_S)
            except BaseException as error:  # noqa: BLE001  # told by the test's own thread
                failure.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        assert failure == []

    def _change(self) -> None:
        """Late ids lie among the others; new ids behind all of them, as orders that come in."""
        self._number += 1
        remark = f"v{self._number}"
        order_id = random.randrange(1, DAYS * IDS_A_DAY)
        chance = random.random()
        if chance < 0.1:
            order_id = DAYS * IDS_A_DAY + self._number
        there = self.history.now(order_id)
        began = time.monotonic()
        if there is None and order_id not in self.history.versions:
            self._database.insert([order(order_id, remark)])
            self.history.note(order_id, remark, began)
        elif there is not None and chance < 0.3:
            self._database.execute("DELETE FROM orders WHERE id = %s", [order_id])
            self.history.note(order_id, None, began)
        elif there is not None:
            self._database.execute("UPDATE orders SET remark = %s WHERE id = %s", [remark, order_id])
            self.history.note(order_id, remark, began)
