"""A worker ends with the supervisor that started it, where that passed its own pid (`EXPORTS_SUPERVISOR_PID`).

Under systemd or in a container the parent may be 1 from the start, or change without harm; then nothing is passed.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # prctl(2)
ORPHANED = 71
"""EX_OSERR of sysexits(3)."""


def die_with(pid: int) -> None:
    """Be killed when the process `pid`, our parent, ends. 0: no supervisor. Leaves at once when it is gone already.

    On Linux the kernel sends SIGKILL at that moment, also when the supervisor was killed itself. It does so too when
    only the thread that started us ends: a supervisor starts workers from its main thread.
    """
    if pid and sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    leave_if_it_died(pid)


def leave_if_it_died(pid: int) -> None:
    """For systems without such a signal, and for a supervisor that ended before `die_with`."""
    if pid and os.getppid() != pid:
        os._exit(ORPHANED)
