"""A real worker process on a real server, ended in all the ways it may end."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import redis

from config.broker import make_broker
from exports.pipeline import middleware
from exports.telemetry import trace

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
COMMAND = [sys.executable, "-W", "error", "-m", "tests.integration.broker_actors"]


@pytest.fixture
def notes(valkey):
    with redis.Redis.from_url(valkey.url(3), decode_responses=True) as client:
        client.flushall()
        yield client


@pytest.fixture
def broker(valkey, notes):
    made = make_broker(valkey.url(0), middleware=middleware.for_sending())
    yield made
    made.close()


@pytest.fixture
def environment(valkey, tmp_path):
    return {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": f"sqlite:///{tmp_path}/orders.sqlite3",
        "EXPORTS_AUTH": "gateway",
        "EXPORTS_GATEWAY_SECRET": "0123456789abcdef0123456789abcdef",
        "EXPORTS_BROKER_URL": valkey.url(0),
        "EXPORTS_REDIS_URL": valkey.url(1),
        "EXPORTS_CACHE_URL": valkey.url(2),
        "EXPORTS_LOG_FORMAT": "text",
        "EXPORTS_SPOOL_DIR": str(tmp_path / "spool"),
        "EXPORTS_STORE_DIR": str(tmp_path / "files"),
        "NOTES_URL": valkey.url(3),
    }


@contextlib.contextmanager
def started(group, environment, **variables):
    process = subprocess.Popen(
        [*COMMAND, group], env={**environment, **variables}, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def send(broker, actor, *args, queue="plan"):
    import dramatiq

    broker.enqueue(dramatiq.Message(queue_name=queue, actor_name=actor, args=args, kwargs={}, options={}))


def ended(process):
    """Return code and log of a process that ends by itself."""
    _, log = process.communicate(timeout=40)
    return process.returncode, log


def read(notes, count):
    """The first `count` notes, waited for."""
    deadline = time.monotonic() + 40
    while len(found := notes.lrange("notes", 0, -1)) < count:
        assert time.monotonic() < deadline, f"only {found}"
        time.sleep(0.02)
    return found[:count]


@pytest.mark.parametrize("arguments", [["shards"], [], ["lanes", "fast"]])
def test_an_unknown_group_is_refused_by_name(environment, notes, arguments):
    done = subprocess.run([*COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "usage: python -m config.worker lanes | fast | normal | slow | finish | notify\n",
    )
    assert notes.execute_command("INFO", "keyspace") == {}


def test_sigterm_lets_the_message_in_work_end_and_leaves_with_zero(broker, environment, notes):
    send(broker, "work", 1.0)
    with started("fast", environment) as process:
        read(notes, 1)
        process.send_signal(signal.SIGTERM)
        code, log = ended(process)
    assert (code, read(notes, 2)) == (0, ["begun", "done"])
    assert "worker.left" in log
    assert "reason=sigterm" in log


def test_a_worker_leaves_with_zero_after_its_slices(broker, environment, notes):
    for _ in range(2):
        send(broker, "note_trace")
    with started("fast", environment, EXPORTS_WORKER_SLICES="2") as process:
        code, log = ended(process)
    assert (code, read(notes, 2)) == (0, ["none", "none"])
    assert "reason=slices" in log


def test_a_worker_leaves_with_zero_above_its_memory(broker, environment, notes):
    send(broker, "grow", 200)
    with started("fast", environment, EXPORTS_WORKER_RSS_MB="200") as process:
        code, log = ended(process)
    assert (code, read(notes, 1)) == (0, ["grown"])
    assert "reason=memory" in log


def test_a_worker_whose_thread_died_leaves_with_70(broker, environment):
    send(broker, "end_a_consumer")
    with started("fast", environment) as process:
        code, log = ended(process)
    assert code == 70
    assert "worker.thread_died" in log


def test_the_trace_of_the_sender_reaches_the_actor_and_ends_with_its_message(broker, environment, notes):
    with trace.tracing(TRACEPARENT):
        send(broker, "note_trace")
    send(broker, "note_trace")
    with started("fast", environment):
        assert read(notes, 2) == [TRACEPARENT, "none"]


def test_lanes_are_nice_and_take_nothing_from_other_queues(broker, environment, notes):
    send(broker, "note_trace")
    id_file = Path(environment["EXPORTS_SPOOL_DIR"]) / "id"
    id_file.parent.mkdir()
    id_file.write_text("here")
    send(broker, "note_niceness", queue="slow.here")
    with started("lanes", environment):
        assert read(notes, 1) == [str(os.nice(0) + 10)]
    assert broker.client.llen(f"{broker.namespace}:plan") == 1


def test_a_worker_is_killed_with_the_supervisor_that_passed_its_pid(environment):
    code = (
        "import os, subprocess, sys, time\n"
        f"child = subprocess.Popen({COMMAND!r} + ['fast'], env={{**os.environ, 'EXPORTS_SUPERVISOR_PID': str(os.getpid())}},"
        " stderr=subprocess.PIPE, text=True)\n"
        "assert any('worker.started' in line for line in child.stderr)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
    child = int(supervisor.stdout.readline())
    supervisor.kill()
    supervisor.communicate()
    deadline = time.monotonic() + 10
    while alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_worker_whose_supervisor_is_gone_already_does_not_start(environment, notes):
    with started("fast", environment, EXPORTS_SUPERVISOR_PID="1") as process:
        code, _ = ended(process)
    assert code == 71
    assert notes.execute_command("INFO", "keyspace") == {}
