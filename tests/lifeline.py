"""What a test process has started ends with it, however it ends: also when nothing of it can run any more.

A process of its own hears the pids on a pipe, and kills what is left when the pipe closes: that is all a kill -9 of
the tests leaves to be seen. (A parent-death signal would come at the end of the *thread* that started a server.)
"""

import functools
import os
import signal
import subprocess
import sys
from contextlib import suppress


def hold(pid: int) -> None:
    """Kill the group of this process, which leads it, when the calling process has ended."""
    _tell(pid)


def let_go(pid: int) -> None:
    """It has ended by itself; its number may be another's soon."""
    _tell(-pid)


def _tell(number: int) -> None:
    pipe = _watcher(os.getpid()).stdin
    assert pipe is not None
    pipe.write(b"%d\n" % number)


@functools.cache
def _watcher(_: int) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-S", __file__], stdin=subprocess.PIPE, bufsize=0, start_new_session=True)


def main() -> None:
    held = set[int]()
    for line in sys.stdin:
        number = int(line)
        if number > 0:
            held.add(number)
        else:
            held.discard(-number)
    for pid in held:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
