"""Estimate: what an export would be, without making one. Reads the orders, writes nothing anywhere."""

import math
from dataclasses import dataclass

from exports import formats, kinds
from exports.conf import conf
from exports.contracts import ExportRequest, Format, Preview, QueueName
from exports.kinds.base import Kind
from exports.pipeline.specification import specify
from exports.state.store import Counters, store

_SAMPLE_ROWS = 200
_ENOUGH_ROWS = 100_000
_FIRST_SPEED = 40_000
"""Rows a second that are assumed until `_ENOUGH_ROWS` have been exported here."""


@dataclass(frozen=True, slots=True)
class Span:
    """Between which two numbers the true one is expected."""

    low: int
    high: int

    @classmethod
    def around(cls, number: float, *, factor: float) -> "Span":
        return cls(math.floor(number / factor), math.ceil(number * factor))


@dataclass(frozen=True, slots=True)
class Estimate:
    """rows: counted, and guessed for shards that were not (`preview.rows` is None there). size: bytes of the file.

    sheets: None for a format without sheets. issues: codes of `exports.messages.ISSUES`.
    """

    preview: Preview
    rows: int
    queue: QueueName
    size: Span
    seconds: Span
    sheets: int | None
    issues: tuple[str, ...]


def estimate(request: ExportRequest) -> Estimate:
    """Takes at most as long as a count at plan may. Raises: as the kind; StateUnavailable."""
    kind = kinds.get(request.kind)
    preview = kind.preview(request, within_s=conf().plan_statement_timeout_ms / 1000)
    rows = _rows(preview)
    return Estimate(
        preview=preview,
        rows=rows,
        queue=kind.queue_class(rows),
        size=Span.around(rows * _row_bytes(kind, preview, request), factor=1.5),
        seconds=Span.around(1 + rows / _speed(store().counters()), factor=2),
        sheets=max(1, math.ceil(rows / (conf().sheet_rows - 1))) if request.format is Format.XLSX else None,
        issues=(*preview.issues, *_issues(preview, rows)),
    )


def _rows(preview: Preview) -> int:
    """A shard that was not counted has as many rows as the others have on average."""
    known = [count for count in preview.rows.values() if count is not None]
    return sum(known) * len(preview.rows) // len(known) if known else 0


def _row_bytes(kind: Kind, preview: Preview, request: ExportRequest) -> float:
    """Of a page of one shard, encoded as the file would be."""
    if preview.sample is None:
        return 0
    specification, output = specify(request), formats.get(request.format)
    block = kind.read(preview.sample, "", _SAMPLE_ROWS, output.time_form, frozenset(specification.masked))
    if not block.rows:
        return 0
    return len(output.encoder(specification).page(block).data) / block.rows


def _speed(counters: Counters) -> float:
    """Rows a second of the tasks that have ended here, the waiting between their steps included."""
    took_s = sum(durations.sum_seconds for durations in counters.durations.values())
    return counters.rows / took_s if counters.rows >= _ENOUGH_ROWS and took_s > 0 else _FIRST_SPEED


def _issues(preview: Preview, rows: int) -> list[str]:
    issues = ["not_all_counted"] if None in preview.rows.values() else []
    if rows > conf().max_rows:
        issues.append("row_limit")
    return issues
