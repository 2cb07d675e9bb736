"""What Django starts first: the broker, before any actor is declared on it."""

import dramatiq
from django.apps import AppConfig
from django.conf import settings

from config.broker import make_broker
from exports.pipeline import middleware


class StartUp(AppConfig):
    """Without a broker of our own, dramatiq would silently make one for a server on localhost."""

    name = "config"

    def ready(self) -> None:
        dramatiq.set_broker(make_broker(settings.EXPORTS_BROKER_URL, middleware=middleware.for_sending()))
