"""What a format is: bytes out of blocks, and a recipe out of the pages that were committed.

Formats import no framework and open no file: the stage hands them what they need.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from exports.blocks import Block
from exports.contracts import Page, PageRecord, Specification, TimeForm


@dataclass(frozen=True, slots=True)
class Literal:
    """Bytes that stand in the artifact as they are. segment: where rows in them come from, of a page that was cut."""

    data: bytes
    segment: str = ""


@dataclass(frozen=True, slots=True)
class Range:
    """`length` bytes of a segment file, from `offset`."""

    segment: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class SegmentPages:
    """The committed pages of one segment, in file order. `name`: the segment file."""

    name: str
    pages: Sequence[PageRecord]


class Encoder(Protocol):
    """Turns blocks into pages. Holds no state between pages."""

    def page(self, block: Block) -> Page: ...


class OutputFormat(Protocol):
    """One file format.

    time_form: how the kind must spell times. extension: without a dot. content_type: of the download.
    """

    extension: str
    content_type: str
    time_form: TimeForm

    def encoder(self, specification: Specification) -> Encoder: ...

    def assemble(
        self,
        specification: Specification,
        segments: Iterable[SegmentPages],
        as_of: str,
        read: Callable[[Range], bytes],
    ) -> Iterable[Literal | Range]:
        """The pieces of the artifact, in order. Nothing in them depends on clock, host or who assembles.

        segments: in file order. as_of: ISO 8601, UTC, the only date inside. read: bytes of one range, for a
        page that must be cut.
        """
