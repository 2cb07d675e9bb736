"""Database connections around messages."""

from typing import Any

from django.db import close_old_connections, connections
from dramatiq import Broker, Middleware, Worker
from dramatiq.broker import MessageProxy

from exports.conf import conf
from exports.pipeline import workers


class DbConnections(Middleware):
    """Drops broken and aged connections before and after each message, all of them when a thread ends."""

    def before_worker_boot(self, broker: Broker, worker: Worker) -> None:
        """Import the driver where orders are read, without connecting: the first page need not wait for it."""
        if workers.current().ranks:
            connections[conf().database]

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        close_old_connections()

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        close_old_connections()

    def after_skip_message(self, broker: Broker, message: MessageProxy) -> None:
        close_old_connections()

    def before_worker_thread_shutdown(self, broker: Broker, thread: Any) -> None:
        connections.close_all()

    def before_consumer_thread_shutdown(self, broker: Broker, thread: Any) -> None:
        connections.close_all()

    def before_worker_shutdown(self, broker: Broker, worker: Worker) -> None:
        connections.close_all()
