"""What this process takes of the machine's memory."""

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/statm")


def resident_mb() -> float:
    """Memory of this process now, in MiB; its peak where the system tells no more.

    Source: proc(5), statm; getrusage(2), whose unit is bytes on macOS and KiB elsewhere.
    """
    if _STATUS.exists():
        return int(_STATUS.read_text().split()[1]) * resource.getpagesize() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
