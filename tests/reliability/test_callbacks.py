"""Callbacks by real processes: none is lost however receivers and senders fail, and no export notices."""

import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from tests.acceptance.conftest import Open, open_site  # noqa: F401
from tests.processes import Site, wait_for
from tests.receiver import SECRET, Answer, Received, Receiver, receiving

TASKS = 20
ENDPOINTS = ("a", "b", "c", "d", "e")
KILLS = 4
WINDOW = ("2026-09-01", "2026-09-01")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def started(open_site: Open, *endpoints: Any) -> Site:
    site = open_site(
        CALLBACKS=json.dumps(endpoints),
        CALLBACK_PLAIN_HTTP="yes",
        CALLBACK_PRIVATE_ADDRESSES="yes",
        CALLBACK_TIMEOUT_MS="1000",
        CALLBACK_DELAYS_MS=",".join(["100", "200", *["400"] * 18]),
    )
    site.start_web()
    for group in ("fast", "lanes"):
        site.start_worker(group)
    return site


def callbacks(site: Site, task_id: str) -> list[dict[str, Any]]:
    status, _, body = site.get(f"/api/orders/export/{task_id}/callbacks")
    assert status == 200, body
    found: list[dict[str, Any]] = json.loads(body)["callbacks"]
    return found


def all_delivered(site: Site, task_ids: list[str]) -> bool:
    found = [callback["state"] for task_id in task_ids for callback in callbacks(site, task_id)]
    assert "failed" not in found
    return found.count("delivered") == len(task_ids) * len(ENDPOINTS)


class FlakySite:
    """Answers as a bad day would, and kills the sender while it waits for some of the answers."""

    def __init__(self, receiver: Receiver, site: Site) -> None:
        self.receiver = receiver
        self.site = site
        self.kills = 0
        self.random = random.Random(7)
        self.lock = threading.Lock()
        self.sender = site.start_worker("notify")

    def answer(self, received: Received, _before: int) -> Answer:
        with self.lock:
            # Between send and record: the bytes are here, and nobody will hear of the answer.
            if self.kills < KILLS and len(self.receiver.received) > 15 * (self.kills + 1):
                self.kills += 1
                self.sender.kill()
                self.sender.wait()
                self.sender = self.site.start_worker("notify")
                return 200
            return self.random.choice([200, 200, 200, 500, (302, {"Location": "/elsewhere"}, b""), self.reset])

    def reset(self, handler: BaseHTTPRequestHandler) -> None:
        handler.connection.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_hundred_callbacks_are_delivered_over_a_flaky_receiver_and_killed_senders(
    open_site: Open, receiver: Receiver
) -> None:
    site = started(open_site, *(receiver.endpoint(name) for name in ENDPOINTS))
    flaky = FlakySite(receiver, site)
    receiver.answer = flaky.answer
    task_ids = [site.submit(*WINDOW) for _ in range(TASKS)]
    for task_id in task_ids:
        assert site.wait(task_id, limit_s=120)["state"] == "succeeded"
    wait_for(lambda: all_delivered(site, task_ids), limit_s=150)
    assert flaky.kills == KILLS

    bodies: dict[str, set[bytes]] = defaultdict(set)
    times: dict[str, list[int]] = defaultdict(list)
    for received in receiver.received:
        Webhook(SECRET).verify(received.body, received.headers)
        bodies[received.id].add(received.body)
        times[received.id].append(int(received.headers["webhook-timestamp"]))
    wanted = {f"{task_id}-1-succeeded-{name}" for task_id in task_ids for name in ENDPOINTS}
    assert set(bodies) == wanted
    assert all(len(found) == 1 for found in bodies.values())
    assert all(found == sorted(found) for found in times.values())
    assert not any(received.path == "/elsewhere" for received in receiver.received)
    log = [attempt for task_id in task_ids for callback in callbacks(site, task_id) for attempt in callback["log"]]
    assert len(log) >= len(receiver.received)
    assert [attempt["result"] for attempt in log].count(None) >= KILLS


@pytest.mark.slow
def test_receivers_that_hang_flood_and_redirect_change_nothing_for_any_export(
    open_site: Open, receiver: Receiver
) -> None:
    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not receiver.over.is_set():
            handler.wfile.write(b"x" * 65536)

    bad: dict[str, Answer] = {
        "/a": receiver.hang,
        "/b": flood,
        "/c": (302, {"Location": receiver.url("/elsewhere")}, b""),
        "/d": 500,
        "/e": 200,
    }
    receiver.answer = lambda received, _before: bad[received.path]
    site = started(open_site, *(receiver.endpoint(name) for name in ENDPOINTS))
    quiet = site.submit(*WINDOW)
    site.wait(quiet)
    expected = site.download(quiet)
    worker = site.start_worker("notify")
    wait_for(lambda: {received.path for received in receiver.received} >= set(bad))
    begun = time.monotonic()
    task_ids = [site.submit(*WINDOW) for _ in range(5)]
    for task_id in task_ids:
        found = site.wait(task_id)
        assert (found["state"], found["error"]) == ("succeeded", None)
        assert site.download(task_id) == expected
    assert time.monotonic() - begun < 40
    wait_for(lambda: len(receiver.of("e")) == 6)
    assert worker.poll() is None
    assert not any(received.path == "/elsewhere" for received in receiver.received)
