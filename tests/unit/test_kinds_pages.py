"""What tells a whole page from a cut or impure one."""

import pytest

from exports.blocks import CELL, ROW, Block
from exports.kinds.orders.bounds import Bounds
from exports.kinds.orders.pages import finish, is_pure, repair
from tests.databases import utc

LINES = [b"1\x1fa\x1fb", b"2\x1f\x1fccc"]
DATA = ROW.join(LINES)


def pure(data: bytes, *, validate: bool) -> bool:
    return is_pure(Block(data, 2, "2"), length=sum(map(len, LINES)), width=3, validate=validate)


def test_a_whole_page_is_pure() -> None:
    assert pure(DATA, validate=True)


@pytest.mark.parametrize("cut", range(1, len(DATA)))
def test_a_cut_is_seen_wherever_it_is_also_in_the_last_cell(cut: int) -> None:
    assert not pure(DATA[:-cut], validate=False)


@pytest.mark.parametrize("separator", [CELL, ROW])
def test_a_separator_in_a_cell_is_seen(separator: bytes) -> None:
    data = DATA.replace(b"a", separator)
    assert not pure(data, validate=False)


def test_bytes_that_are_no_text_are_seen_where_the_database_does_not_check() -> None:
    data = DATA.replace(b"a", b"\xff")
    assert pure(data, validate=False)
    assert not pure(data, validate=True)


@pytest.mark.parametrize(
    ("given", "right"),
    [
        (b"plain", b"plain"),
        (b"a\x1fb\x1e", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}".encode()),
        (b"\xed\xa0\xbd!", "\N{REPLACEMENT CHARACTER}!".encode()),
        ("路".encode()[:2], "\N{REPLACEMENT CHARACTER}".encode()),
        ("😀\x00".encode(), "😀\x00".encode()),
    ],
)
def test_repair_changes_only_what_no_block_can_carry(given: bytes, right: bytes) -> None:
    assert repair(given) == right


def test_a_page_without_columns_to_finish_is_returned_as_it_is() -> None:
    block = Block(DATA, 2, "2")
    assert finish(block, finishers={}, width=3) is block


def test_bounds_survive_their_text() -> None:
    bounds = Bounds(utc("2026-09-13 16:00:00"), utc("2026-09-14 03:00:00.000001"), "1", "2026091400012345678", 7)
    assert Bounds.from_text(bounds.to_text()) == bounds
