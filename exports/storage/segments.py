"""What every spool keeps of a page beside its bytes, and how committed bytes are proved: one line, one running CRC."""

import json
from collections.abc import Sequence

from isal.isal_zlib import crc32

from exports.contracts import CommittedSegment, Page, PageRecord, Warning
from exports.errors import SegmentDamaged


def line_of(page: Page) -> bytes:
    """The record of a page as one line of JSON."""
    warnings = [[warning.code, warning.count, list(warning.keys)] for warning in page.warnings]
    plain = [page.rows, len(page.data), page.raw_length, page.raw_crc, warnings]
    return json.dumps(plain, separators=(",", ":")).encode() + b"\n"


def record_of(line: bytes) -> PageRecord:
    """A record out of its line. Raises: ValueError or TypeError when it is not one."""
    rows, length, raw_length, raw_crc, warnings = json.loads(line)
    return PageRecord(
        rows, length, raw_length, raw_crc, tuple(Warning(code, count, tuple(keys)) for code, count, keys in warnings)
    )


def count(crc: int, data: bytes, line: bytes) -> int:
    """The CRC-32 of a segment with one more page."""
    return crc32(line, crc32(data, crc))


def grown(base: CommittedSegment, page: Page, line: bytes) -> CommittedSegment:
    """The segment with one more page."""
    return CommittedSegment(
        base.name,
        base.shard_id,
        base.fence,
        pages=base.pages + 1,
        rows=base.rows + page.rows,
        length=base.length + len(page.data),
        crc=count(base.crc, page.data, line),
    )


def check(segment: CommittedSegment, records: Sequence[PageRecord], *, crc: int) -> None:
    """Raises: SegmentDamaged when what was read is not what was committed."""
    told = (len(records), sum(record.length for record in records), sum(record.rows for record in records), crc)
    if told != (segment.pages, segment.length, segment.rows, segment.crc):
        raise SegmentDamaged((segment.shard_id,))
