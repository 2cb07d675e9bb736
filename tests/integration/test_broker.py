"""The broker against a real server that stops answering."""

import contextlib
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import dramatiq
import pytest
import redis
from dramatiq.brokers.redis import RedisBroker
from dramatiq.errors import ConnectionClosed
from dramatiq.middleware import Retries, TimeLimit

from config.broker import HintBroker, make_broker
from exports.pipeline import middleware
from exports.pipeline.middleware.broker_heartbeat import BrokerHeartbeat

TIMEOUT_S = 0.4
FREEZE_S = 2.0


@pytest.fixture
def broker(valkey):
    with redis.Redis.from_url(valkey.url(0)) as client:
        client.flushdb()
    made = make_broker(
        valkey.url(0), middleware=middleware.for_sending(), socket_timeout_s=TIMEOUT_S, maintenance_chance=1_000_000
    )
    made.emit_after("process_boot")
    yield made
    made.close()


@contextlib.contextmanager
def frozen(server):
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


@contextlib.contextmanager
def working(broker, monkeypatch):
    monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 0.1)
    worker = dramatiq.Worker(broker, worker_timeout=50, worker_threads=1)
    worker.start()
    yield worker
    worker.stop(timeout=5000)


def declare(broker, function, **options):
    return dramatiq.actor(function, broker=broker, actor_name="probe", queue_name="plan", **options)


@pytest.mark.parametrize("method", ["__next__", "ack", "nack", "requeue"])
def test_the_base_still_has_the_method_that_is_hardened(valkey, method):
    base = RedisBroker(url=valkey.url(0)).consumer_class
    assert callable(base.__dict__[method])


def test_consumer_threads_outlive_a_server_that_hangs(broker, valkey, monkeypatch):
    ran = threading.Event()
    actor = declare(broker, ran.set)
    with working(broker, monkeypatch) as worker:
        actor.send_with_options(delay=60_000)
        wait_until(lambda: worker.consumers["plan.DQ"].delay_queue.qsize() == 1)
        with frozen(valkey):
            time.sleep(FREEZE_S)
        assert sorted(name for name, thread in worker.consumers.items() if thread.is_alive()) == ["plan", "plan.DQ"]
        wait_until(lambda: sent(actor.send_with_options, delay=1))
        assert ran.wait(10)


def test_a_hanging_server_kills_the_delay_consumer_of_the_plain_broker(valkey, monkeypatch):
    """The reason for HintBroker. When this fails, dramatiq has mended it and HintBroker can go."""
    died = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _: died.set())
    plain = RedisBroker(
        client=redis.Redis(port=valkey.port, socket_timeout=TIMEOUT_S),
        middleware=[Retries(), TimeLimit()],
        namespace="plain",
    )
    actor = declare(plain, lambda: None)
    with working(plain, monkeypatch) as worker:
        actor.send_with_options(delay=60_000)
        wait_until(lambda: worker.consumers["plan.DQ"].delay_queue.qsize() == 1)
        with frozen(valkey):
            assert died.wait(60)
        assert not worker.consumers["plan.DQ"].is_alive()
    plain.close()


@pytest.mark.parametrize("method", ["ack", "nack", "requeue", "next"])
def test_a_time_out_is_a_closed_connection_to_the_consumer(broker, valkey, method):
    declare(broker, lambda: None).send()
    consumer = broker.consume("plan", prefetch=2, timeout=50)
    message = next(consumer)
    calls = {
        "ack": lambda: consumer.ack(message),
        "nack": lambda: consumer.nack(message),
        "requeue": lambda: consumer.requeue([message]),
        "next": lambda: next(broker.consume("plan", prefetch=1, timeout=50)),
    }
    with frozen(valkey), pytest.raises(ConnectionClosed):
        calls[method]()


def test_an_enqueue_without_an_answer_is_sent_once(broker, valkey):
    actor = declare(broker, lambda: None)
    actor.send()
    with frozen(valkey), pytest.raises(redis.TimeoutError):
        actor.send()
    wait_until(broker.client.ping)
    assert broker.client.llen(f"{broker.namespace}:plan") == 2


def test_a_waiting_consumer_is_rung_for(broker):
    """It would not look again for a minute."""
    actor = declare(broker, lambda: None)
    consumer = broker.consume("plan", timeout=60_000)
    threading.Timer(0.2, actor.send).start()
    began = time.monotonic()
    assert next(consumer) is None  # the ring
    assert next(consumer).actor_name == "probe"
    assert time.monotonic() - began < 10


def test_a_lost_ring_costs_one_waiting_time(broker):
    declare(broker, lambda: None).send()
    broker.client.delete(broker.bell("plan"))
    assert next(broker.consume("plan", timeout=60_000)).actor_name == "probe"


def test_rings_that_nobody_hears_do_not_stay(broker):
    declare(broker, lambda: None).send()
    assert 0 < broker.client.ttl(broker.bell("plan")) <= 5


def test_a_process_at_work_leaves_messages_of_all_queues_to_others(broker):
    actors = [
        dramatiq.actor(lambda: None, broker=broker, actor_name=name, queue_name=name) for name in ("plan", "finish")
    ]
    for actor in actors:
        actor.send()
    mine, other = (broker.consume(name, timeout=50) for name in ("plan", "finish"))
    message = next(mine)
    assert next(other) is None
    assert broker.waiting("finish") == 1
    mine.ack(message)
    assert next(other).actor_name == "finish"


def test_consumers_that_are_rung_at_one_moment_take_one_message_together(broker):
    names = ("plan", "finish")
    for name in names:
        dramatiq.actor(lambda: None, broker=broker, actor_name=name, queue_name=name)
    consumers = [broker.consume(name, timeout=50) for name in names]
    with ThreadPoolExecutor(len(names)) as pool:
        for _ in range(100):
            for name in names:
                broker.enqueue(dramatiq.Message(name, name, (), {}, {}))
            [(consumer, message)] = [
                pair for pair in zip(consumers, pool.map(next, consumers), strict=True) if pair[1] is not None
            ]
            consumer.ack(message)
            broker.flush_all()


def test_a_busy_worker_that_fetches_nothing_keeps_its_heartbeat(broker):
    declare(broker, lambda: None)
    beats = BrokerHeartbeat(every_s=0.05)
    beats.after_worker_boot(broker, None)
    try:
        wait_until(lambda: broker.client.zscore(f"{broker.namespace}:__heartbeats__", broker.broker_id))
        first = broker.client.zscore(f"{broker.namespace}:__heartbeats__", broker.broker_id)
        wait_until(lambda: broker.client.zscore(f"{broker.namespace}:__heartbeats__", broker.broker_id) > first)
    finally:
        beats.after_worker_shutdown(broker, None)


def test_the_brokers_defaults_find_a_dead_workers_messages_within_seconds():
    made = make_broker("redis://127.0.0.1:6379/0", middleware=[])
    assert isinstance(made, HintBroker)
    assert (made.maintenance_chance, made.heartbeat_timeout, made.middleware) == (50_000, 60_000, [])
    assert made.client.get_retry().get_retries() == 0
    made.close()


def test_the_time_limit_is_the_last_middleware_and_connections_close_after_all_that_use_them():
    names = [type(one).__name__ for one in middleware.for_workers(leave=print, slices=1, rss_mb=64)]
    assert names == [
        *("BrokerHeartbeat", "RecycleWorker", "DbConnections", "TraceContext", "LogContext"),
        *("Retries", "StopSignal", "TimeLimit"),
    ]


def sent(send, **options):
    """True when the message is out; the server may still be catching up."""
    try:
        send(**options)
    except (redis.ConnectionError, redis.TimeoutError):
        return False
    return True


def wait_until(condition, *, limit_s=15.0):
    deadline = time.monotonic() + limit_s
    while True:
        with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):
            if condition():
                return
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
