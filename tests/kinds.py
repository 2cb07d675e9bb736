"""Kinds for the tests: one that knows neither days nor orders, and orders that fail when told to."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import ClassVar

from exports.blocks import CELL, ROW, Block
from exports.contracts import (
    CellType,
    Column,
    Drift,
    ExportRequest,
    Preview,
    QueueName,
    Recount,
    Shard,
    Snapshot,
    TimeForm,
)
from exports.kinds.base import by_rows
from exports.kinds.orders import OrdersKind

WORDS = sorted(
    f"{first}{second}{third}|é\n"
    for first in "abcde"
    for second in "xyz"
    for third in "αβγδε"
    if (first, second) != ("c", "y")
)


class WordsKind:
    """A list of words, a shard for each first letter; keys are the words themselves, cursors any text."""

    name = "words"
    columns: Sequence[Column] = (
        Column("word", "词", "Word", CellType.TEXT),
        Column("length", "长度", "Length", CellType.INTEGER),
    )
    released: ClassVar[list[str]] = []

    def shard_ids(self, request: ExportRequest) -> list[str]:
        return sorted({word[0] for word in WORDS})

    def take_snapshot(self, request: ExportRequest) -> Snapshot:
        return Snapshot(dt.datetime(2026, 9, 1, tzinfo=dt.UTC), "")

    def plan_shard(self, request: ExportRequest, snapshot: Snapshot, shard_id: str) -> Shard:
        return Shard(shard_id, shard_id, "", sum(word.startswith(shard_id) for word in WORDS))

    def read(self, shard: Shard, cursor: str, limit: int, form: TimeForm, masked: frozenset[str]) -> Block:
        page = [word for word in WORDS if word.startswith(shard.id) and word > cursor][:limit]
        rows = [CELL.join([word.encode(), str(len(word)).encode()]) for word in page]
        return Block(ROW.join(rows), len(page), page[-1] if page else "")

    def queue_class(self, rows: int) -> QueueName:
        return by_rows(rows)

    def preview(self, request: ExportRequest, *, within_s: float) -> Preview:
        rows = {name: sum(word.startswith(name) for word in WORDS) for name in self.shard_ids(request)}
        return Preview(rows=dict(rows), sample=Shard("a", "a", "", rows["a"]), issues=())

    def recount(self, shard: Shard, snapshot: Snapshot) -> Recount:
        return Recount(Drift.EXACT)

    def keys(self, shard: Shard) -> tuple[str, str] | None:
        return "", ""

    def file_stem(self, request: ExportRequest) -> str:
        return "words"

    def release(self, task_id: str) -> None:
        self.released.append(task_id)


class BulkKind(WordsKind):
    """Few rows and many bytes: 11 MB of CSV in four shards, which take three parts of 5 MiB."""

    name = "bulk"
    columns: Sequence[Column] = (
        Column("number", "号", "Number", CellType.INTEGER),
        Column("text", "文", "Text", CellType.TEXT),
    )
    version: ClassVar[list[str]] = ["v1"]
    """Stands in every row: other versions are other bytes."""
    rows = 92

    def shard_ids(self, request: ExportRequest) -> list[str]:
        return ["a", "b", "c", "d"]

    def plan_shard(self, request: ExportRequest, snapshot: Snapshot, shard_id: str) -> Shard:
        return Shard(shard_id, shard_id, "", self.rows)

    def read(self, shard: Shard, cursor: str, limit: int, form: TimeForm, masked: frozenset[str]) -> Block:
        first = int(cursor or 0) + 1
        numbers = range(first, min(first + min(limit, 50), self.rows + 1))
        rows = [CELL.join([b"%d" % number, self._text(shard.id, number)]) for number in numbers]
        return Block(ROW.join(rows), len(rows), str(numbers[-1]) if numbers else "")

    def _text(self, shard_id: str, number: int) -> bytes:
        line = f"{self.version[0]} {shard_id} {number} ".encode()
        return (line * 6000)[:30_000]

    def file_stem(self, request: ExportRequest) -> str:
        return "bulk"


class LargeBulkKind(BulkKind):
    """61 MB of CSV: twelve parts of 5 MiB."""

    rows = 510


Fault = Callable[[Shard, str, int], None]


class FlakyOrders(OrdersKind):
    """Orders whose reads and plan statements first call what the test has put here."""

    before_read: ClassVar[list[Fault]] = []
    before_recount: ClassVar[list[Callable[[str], object]]] = []
    before_preview: ClassVar[list[Callable[[], object]]] = []
    before_plan: ClassVar[list[Callable[[str], None]]] = []
    reads: ClassVar[list[tuple[str, str, int]]] = []

    def read(self, shard: Shard, cursor: str, limit: int, form: TimeForm, masked: frozenset[str]) -> Block:
        self.reads.append((shard.id, cursor, limit))
        for fault in self.before_read:
            fault(shard, cursor, limit)
        return super().read(shard, cursor, limit, form, masked)

    def preview(self, request: ExportRequest, *, within_s: float) -> Preview:
        for fault in self.before_preview:
            fault()
        return super().preview(request, within_s=within_s)

    def plan_shard(self, request: ExportRequest, snapshot: Snapshot, shard_id: str) -> Shard:
        for fault in self.before_plan:
            fault(shard_id)
        return super().plan_shard(request, snapshot, shard_id)

    def recount(self, shard: Shard, snapshot: Snapshot) -> Recount:
        for fault in self.before_recount:
            fault(shard.id)
        return super().recount(shard, snapshot)
