"""What the tests start is gone when they are."""

import subprocess
import sys
from pathlib import Path

import psutil

from tests.processes import wait_for

_STARTS_ONE = """
import sys, time
from pathlib import Path
from tests import services
server = services.start_valkey(Path(sys.argv[1]))
server.restart()
print(server.pid, flush=True)
time.sleep(60)
"""


def test_a_server_dies_with_the_test_process_that_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", _STARTS_ONE, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        server = psutil.Process(int(tests.stdout.readline()))
        assert server.is_running()
        tests.kill()
    wait_for(lambda: not server.is_running())
