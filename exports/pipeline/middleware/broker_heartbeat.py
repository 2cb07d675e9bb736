"""A sign of life to the broker from a thread of its own."""

import threading

from dramatiq import Broker, Middleware, Worker

from exports.telemetry import logs

_events = logs.events(__name__)


class BrokerHeartbeat(Middleware):
    """Any command of a process counts as its heartbeat, so a busy worker that fetches nothing would seem dead.

    Another worker would then be given the message that this one is working on.
    """

    def __init__(self, *, every_s: float) -> None:
        self._every_s = every_s
        self._stopped = threading.Event()

    def after_worker_boot(self, broker: Broker, worker: Worker) -> None:
        threading.Thread(target=self._beat, args=(broker,), name="broker-heartbeat", daemon=True).start()

    def after_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        self._stopped.set()

    def _beat(self, broker: Broker) -> None:
        while not self._stopped.wait(self._every_s):
            for queue in sorted(broker.get_declared_queues())[:1]:
                self._ask(broker, queue)

    def _ask(self, broker: Broker, queue: str) -> None:
        try:
            broker.do_qsize(queue)  # type: ignore[attr-defined]  # made by RedisBroker.__getattr__
        except Exception as error:  # noqa: BLE001  # the thread lives on; the next beat tries again
            _events.warning("broker.heartbeat_missed", error=error)
