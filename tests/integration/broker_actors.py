"""Actors that the tests of a worker process send to, and the process itself: `python -m tests.integration.broker_actors GROUP`."""

import os
import sys
import threading
import time

import dramatiq
import redis

from config import worker
from exports.telemetry import trace


def _note(text):
    with redis.Redis.from_url(os.environ["NOTES_URL"]) as notes:
        notes.rpush("notes", text)


@dramatiq.actor(queue_name="plan")
def note_trace():
    _note(trace.current.get() or "none")


@dramatiq.actor(queue_name="slow")
def note_niceness():
    _note(str(os.nice(0)))


@dramatiq.actor(queue_name="plan")
def work(seconds):
    _note("begun")
    time.sleep(seconds)
    _note("done")


@dramatiq.actor(queue_name="plan")
def grow(megabytes):
    grow.kept = bytearray(os.urandom(1 << 20) * megabytes)
    _note("grown")


@dramatiq.actor(queue_name="plan")
def end_a_consumer():
    """What an error that dramatiq does not catch does to a consumer's thread."""
    [thread] = [thread for thread in threading.enumerate() if getattr(thread, "queue_name", "") == "plan.DQ"]
    thread.running = False


if __name__ == "__main__":
    sys.exit(worker.main(sys.argv[1:], stages=["tests.integration.broker_actors"]))
