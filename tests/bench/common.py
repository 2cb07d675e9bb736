"""What both halves of `make bench` share: the days, the times of production, and the sample."""

import datetime as dt
from typing import Any

FIRST = dt.date(2026, 9, 1)
DAYS = 30
LAST = FIRST + dt.timedelta(days=DAYS - 1)
PRODUCTION_TIMES = {"LEASE_MS": "60000", "RENEW_EVERY_MS": "10000", "SWEEP_EVERY_MS": "5000"}


def fill(cursor: Any, *, vendor: str, rows: int) -> None:
    """Make the table, and let the planner know it."""
    from exports.kinds.orders import sample  # needs settings

    for statement in sample.statements(vendor):
        cursor.execute(statement)
    sample.insert(cursor, sample.generate(rows, seed=1, days=DAYS, first_day=FIRST), vendor=vendor)
    sample.analyze(cursor, vendor=vendor)
