"""What a plan keeps for later reads: of the whole export, and of each day."""

import datetime as dt
import json
from dataclasses import dataclass

from exports.contracts import Snapshot


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a shard's reads need. Half-open times, UTC.

    first, last: places (`ordering`) of its first and last row, both included; "" for an empty day. settled: see `Limits`.
    """

    start: dt.datetime
    end: dt.datetime
    first: str
    last: str
    checksum: int
    settled: str = ""

    def to_text(self) -> str:
        plain = [self.start.isoformat(), self.end.isoformat(), self.first, self.last, self.checksum, self.settled]
        return json.dumps(plain, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Bounds":
        start, end, *others = json.loads(text)
        return cls(dt.datetime.fromisoformat(start), dt.datetime.fromisoformat(end), *others)


@dataclass(frozen=True, slots=True)
class Limits:
    """What every shard of a plan shares. key: see `Ordering.limit`.

    settled: PostgreSQL's number of the oldest transaction that was open at plan, "" elsewhere. A replica that has not
    replayed all older ones lacks rows of the plan.
    """

    key: str
    settled: str = ""

    def to_text(self) -> str:
        return f"{self.key}|{self.settled}"

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Limits":
        return cls(*snapshot.bounds.split("|"))
