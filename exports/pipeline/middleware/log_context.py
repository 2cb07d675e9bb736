"""Every log line under a message names it."""

import threading
from typing import Any

from dramatiq import Broker, Middleware
from dramatiq.broker import MessageProxy

from exports.telemetry import logs


class LogContext(Middleware):
    """Binds the message's id and actor. Task and shard are bound by the step, which learns them from its claim."""

    def __init__(self) -> None:
        self._here = threading.local()

    def before_process_message(self, broker: Broker, message: MessageProxy) -> None:
        self._here.token = logs.bind(messageId=message.message_id, actor=message.actor_name)

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        self._unbind()

    def after_skip_message(self, broker: Broker, message: MessageProxy) -> None:
        self._unbind()

    def _unbind(self) -> None:
        token = self._here.__dict__.pop("token", None)
        if token is not None:
            logs.unbind(token)
