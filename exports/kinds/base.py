"""What a kind is: it names the shards of an export and reads their pages.

Pipeline, state and formats know neither days nor orders; a second kind is another folder beside `orders`.
"""

from collections.abc import Sequence
from typing import Protocol

from exports.blocks import Block
from exports.conf import conf
from exports.contracts import Column, ExportRequest, Preview, QueueName, Recount, Shard, Snapshot, TimeForm


class Kind(Protocol):
    """One source of rows. Every method runs at most one short statement, unless it says otherwise.

    Raises, all methods that read: SourceUnavailable (time-out, lost connection, replica conflict: try again),
    PageTooLarge (the page does not fit into memory: read a smaller one), StepBroken (anything else).
    """

    name: str
    columns: Sequence[Column]

    def shard_ids(self, request: ExportRequest) -> list[str]:
        """The ids of all shards, in file order; known without the database. Ids sort in that order."""

    def queue_class(self, rows: int) -> QueueName:
        """In which queue an export of so many rows waits; no statement. `by_rows` goes by the settings."""

    def preview(self, request: ExportRequest, *, within_s: float) -> Preview:
        """How many rows each shard has now, as far as can be counted in time; a few short statements."""

    def take_snapshot(self, request: ExportRequest) -> Snapshot:
        """Fix which rows the export promises. May wait, bounded, for older transactions (a few statements)."""

    def plan_shard(self, request: ExportRequest, snapshot: Snapshot, shard_id: str) -> Shard:
        """Bounds and row count of one shard."""

    def read(self, shard: Shard, cursor: str, limit: int, form: TimeForm, masked: frozenset[str]) -> Block:
        """The page behind `cursor` ("" is the start): at most `limit` rows, in key order.

        An empty block is returned only when the statement ended without error and no row is left.
        """

    def recount(self, shard: Shard, snapshot: Snapshot) -> Recount:
        """Compare the shard's rows now with the plan. Never raises for a time-out: the drift is then UNKNOWN."""

    def keys(self, shard: Shard) -> tuple[str, str] | None:
        """First and last key of a shard at plan, both "" for none; no statement. None where keys are personal data:
        they stand in no manifest then, and bounds neither.
        """

    def file_stem(self, request: ExportRequest) -> str:
        """The file's name without extension, such as `订单_2026-09-01_2026-09-30`."""

    def release(self, task_id: str) -> None:
        """The task was cancelled: free what the kind holds for it."""


def by_rows(rows: int) -> QueueName:
    """The queue for rows that cost what is usual."""
    if rows <= conf().fast_rows:
        return QueueName.FAST
    return QueueName.NORMAL if rows <= conf().normal_rows else QueueName.SLOW
