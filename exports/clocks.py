"""Two clocks that should agree: the one of a server, and this host's."""

import time

_SKEW_S = 5
"""More than this between two clocks is a mistake in the set-up."""


def disagreement(name: str, now_s: float) -> str:
    """What is wrong with the clock of that name, which says now_s (seconds since 1970); empty where it agrees."""
    ahead_s = round(now_s - time.time())
    if abs(ahead_s) <= _SKEW_S:
        return ""
    return f"{name} is {abs(ahead_s)} s {'ahead of' if ahead_s > 0 else 'behind'} this host's"
