"""What crosses a boundary of the package: plain, frozen, typed values.

No framework is imported here. Units stand in the names (`lease_ms`); times are UTC; keys and
cursors are the database's own text and are never parsed outside the kind that made them.
"""

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

TASK_PREFIX = "exp_"
"""What every task's id begins with."""


class State(StrEnum):
    """The five states of a task, as the API shows them."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (State.SUCCEEDED, State.FAILED, State.CANCELLED)


class Phase(StrEnum):
    """What a running task does; keeps its last value after the end."""

    FETCH = "fetch"
    RENDER = "render"
    UPLOAD = "upload"


class Step(StrEnum):
    """The classes of work that a worker can claim."""

    PLAN = "plan"
    SHARD = "shard"
    RENDER = "render"
    UPLOAD = "upload"


STEP_OF: Mapping[Phase | None, Step] = {
    None: Step.PLAN,
    Phase.FETCH: Step.SHARD,
    Phase.RENDER: Step.RENDER,
    Phase.UPLOAD: Step.UPLOAD,
}
"""The class of a task's next step, by its phase."""


class QueueName(StrEnum):
    """How much a planned task has to read: who waits for little does not wait for those who want much."""

    FAST = "fast"
    NORMAL = "normal"
    SLOW = "slow"


class Format(StrEnum):
    CSV = "csv"
    XLSX = "xlsx"


class CellType(StrEnum):
    """How a column's cells are read, written and typed. The text form of each in a block:

    TEXT, ENUM, URL, JSON, UUID, BYTES (lower-case hex): as they are. IDENTIFIER: text even when numeric.
    INTEGER: digits. DECIMAL and MONEY: plain notation with the column's scale. FLOAT: shortest
    round-trip form. BOOLEAN: `true` or `false`. DATE: `YYYY-MM-DD`. DATETIME: see `TimeForm`.
    NULL, zero dates and numbers that are not finite are empty.
    """

    TEXT = "text"
    IDENTIFIER = "identifier"
    INTEGER = "integer"
    DECIMAL = "decimal"
    MONEY = "money"
    FLOAT = "float"
    BOOLEAN = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    ENUM = "enum"
    JSON = "json"
    UUID = "uuid"
    URL = "url"
    BYTES = "bytes"


class TimeForm(StrEnum):
    """How a block spells a DATETIME cell, in the business time zone.

    TEXT: `YYYY-MM-DD HH:MM:SS[.fraction](+|-)HH[:MM]`, no trailing zeros in the fraction.
    SERIAL: days since 1899-12-30 as a decimal number (the spreadsheet's own form), or the TEXT form
    where a spreadsheet cannot hold the time (before 1900-03-01 or after 9999-12-31).
    """

    TEXT = "text"
    SERIAL = "serial"


class PersonalData(StrEnum):
    """Why a column is masked for owners without the right to see it."""

    NAME = "name"
    PHONE = "phone"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class Column:
    """One column, declared once; everything that shows or types it reads this.

    scale: digits behind the point (DECIMAL, MONEY). width: characters in a spreadsheet.
    choices: stored value to (Chinese, English) label (ENUM); without them the value is shown.
    """

    name: str
    zh: str
    en: str
    type: CellType
    scale: int = 0
    width: int = 16
    nullable: bool = False
    personal: PersonalData | None = None
    choices: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Specification:
    """Everything that shapes the bytes of a file, apart from which rows it holds.

    A worker whose own specification has another digest than the task's changes nothing.
    """

    kind: str
    format: Format
    columns: tuple[Column, ...]
    masked: tuple[str, ...]
    zone: str
    header_language: str
    charset: str
    delimiter: str
    formula_guard: bool
    sheet_rows: int
    sheet_title: str
    renderer: int

    def text(self) -> str:
        """A canonical JSON form."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name != "columns"}
        plain["columns"] = [
            {
                "name": column.name,
                "labels": [column.zh, column.en],
                "type": column.type,
                "scale": column.scale,
                "width": column.width,
                "choices": sorted([value, *labels] for value, labels in column.choices.items()),
            }
            for column in self.columns
        ]
        return json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    def digest(self) -> str:
        """SHA-256 (hex) of the text."""
        return hashlib.sha256(self.text().encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What was asked for. Both days are included, in the business time zone.

    masked: personal data is not shown, because the owner had no right to it at submit.
    """

    kind: str
    owner: str
    request_id: str
    first_day: dt.date
    last_day: dt.date
    format: Format
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Which rows an export promises, fixed at plan. `bounds` is the kind's own text.

    as_of: UTC, microseconds. certain: False when a transaction older than `as_of` may still
    commit rows (drift is then `unknown`).
    """

    as_of: dt.datetime
    bounds: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the work, named by the kind. Ids sort in file order.

    bounds: the kind's own text, handed back to it with each read; never parsed elsewhere.
    planned: rows counted at plan.
    """

    id: str
    label: str
    bounds: str
    planned: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What an export would find now, without a promise. rows: by shard; None where the time was over before.

    sample: a shard with rows, for a look at their size. issues: codes of `exports.messages.ISSUES`.
    """

    rows: Mapping[str, int | None]
    sample: Shard | None
    issues: tuple[str, ...]


class Drift(StrEnum):
    """How a shard's rows at its end compare with the plan, where no number can be told."""

    EXACT = "exact"
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Recount:
    """The count taken again after a shard's last page. difference: rows now less rows planned."""

    drift: Drift
    difference: int = 0

    def told(self) -> str:
        """The difference with its sign, or that nobody knows it; empty for an exact one."""
        if self.drift is Drift.EXACT:
            return ""
        return f"{self.difference:+,}" if self.difference else self.drift


@dataclass(frozen=True, slots=True)
class Warning:
    """Cells that a file shows changed. keys: the first few rows, as the database's own text."""

    code: str
    count: int
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One encoded page as it stands in a segment file.

    data: the bytes to append. raw_length, raw_crc: of the bytes before compression (CRC-32; the same
    as of `data` where nothing is compressed).
    """

    data: bytes
    rows: int
    raw_length: int
    raw_crc: int
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True, slots=True)
class PageRecord:
    """What the sidecar keeps of a page. `length` is of the bytes in the segment."""

    rows: int
    length: int
    raw_length: int
    raw_crc: int
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True, slots=True)
class CommittedSegment:
    """The part of a segment file that counts: its first `length` bytes, `pages` pages, `rows` rows.

    crc: CRC-32 over each page's bytes and its line of the sidecar.
    """

    name: str
    shard_id: str
    fence: int
    pages: int
    rows: int
    length: int
    crc: int


@dataclass(frozen=True, slots=True)
class StoredPart:
    """What the store answered for a part (etag, without quotes), and the MD5 of its bytes, hex."""

    etag: str
    md5: str


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """An upload in parts of `part_size` bytes that a store has begun under an id of its own.

    sha256: of the whole artifact, hex; parts of other bytes must not be mixed with these.
    """

    key: str
    sha256: str
    upload_id: str
    part_size: int


class Right(StrEnum):
    SUBMIT = "export.submit"
    VIEW = "export.view"
    PERSONAL = "export.personal"
    OPS_READ = "ops.read"
    OPS_ACT = "ops.act"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. An owner sees its own tasks; ops rights reach all."""

    owner: str
    rights: frozenset[Right]

    def may(self, right: Right) -> bool:
        return right in self.rights
