"""Whether two clocks agree."""

import time

import pytest

from exports import clocks


@pytest.mark.parametrize(
    ("ahead_s", "told"),
    [
        (4, ""),
        (-4, ""),
        (90, "the clock of Redis is 90 s ahead of this host's"),
        (-90, "the clock of Redis is 90 s behind this host's"),
    ],
)
def test_a_difference_of_more_than_five_seconds_is_told(ahead_s: int, told: str) -> None:
    assert clocks.disagreement("the clock of Redis", time.time() + ahead_s) == told
