"""Which days are exported: enough rows to be killed in the middle of, few enough to take seconds."""

import datetime as dt
from dataclasses import dataclass

from exports import kinds
from exports.contracts import ExportRequest, Format, Snapshot
from exports.errors import ExportError

PAGES = 60
"""Pages of the window, about: a page takes a millisecond or more."""
_LOOK_BACK_DAYS = 366
_QUIET_DAYS = 8
"""Younger rows may still change between two exports that must have the same bytes."""
_ENOUGH_ROWS = 400
_MOST_DAYS = 7
_LARGEST_PAGE = 2000


class NoWindow(ExportError):
    """No days with enough rows were found."""

    code = "no_window"


@dataclass(frozen=True, slots=True)
class Window:
    """Both days included. rows: counted as a plan counts them."""

    first_day: dt.date
    last_day: dt.date
    rows: int

    @property
    def page_rows(self) -> int:
        """Small enough that the window has many pages, and that it is no small export, which one process does alone."""
        return max(1, min(self.rows // PAGES, _LARGEST_PAGE))


def given(kind: str, first_day: dt.date, last_day: dt.date) -> Window:
    """The days that the operator names. Raises: NoWindow, and as the kind when it cannot read."""
    whole = _request(kind, first_day, last_day)
    rows = _count(whole, kinds.get(kind).take_snapshot(whole))
    if rows < _ENOUGH_ROWS:
        raise NoWindow(f"{first_day} to {last_day} hold {rows} rows; at least {_ENOUGH_ROWS} are needed")
    return Window(first_day, last_day, rows)


def choose(kind: str, *, today: dt.date) -> Window:
    """The latest quiet days, at least two, that together hold enough rows.

    Raises: NoWindow, and as the kind when it cannot read.
    """
    days = [today - dt.timedelta(days=back) for back in range(_QUIET_DAYS, _LOOK_BACK_DAYS)]
    # One snapshot for all: each may wait for older transactions.
    snapshot = kinds.get(kind).take_snapshot(_request(kind, days[-1], days[0]))
    last_day, rows = days[0], 0
    for day in days:
        rows += _count(_request(kind, day, day), snapshot)
        if not rows or (last_day - day).days >= _MOST_DAYS:
            last_day, rows = day - dt.timedelta(days=1), 0
        elif rows >= _ENOUGH_ROWS and day != last_day:
            return Window(day, last_day, rows)
    raise NoWindow(
        f"no {_MOST_DAYS} days in a row of the last year hold {_ENOUGH_ROWS} rows: name days with --from and --to"
    )


def _request(kind: str, first_day: dt.date, last_day: dt.date) -> ExportRequest:
    return ExportRequest(kind, "", "", first_day, last_day, Format.CSV)


def _count(request: ExportRequest, snapshot: Snapshot) -> int:
    source = kinds.get(request.kind)
    return sum(source.plan_shard(request, snapshot, shard_id).planned for shard_id in source.shard_ids(request))
