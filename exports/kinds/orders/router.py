"""Sends every query of an exported model to the orders database, and no write anywhere."""

from typing import Any

from django.db import models

from exports.conf import conf
from exports.models import OrdersAreReadOnly, ReadOnlyModel


class ReadOnlyRouter:
    """Name it in `DATABASE_ROUTERS`."""

    def db_for_read(self, model: type[models.Model], **_: Any) -> str | None:
        return conf().database if issubclass(model, ReadOnlyModel) else None

    def db_for_write(self, model: type[models.Model], **_: Any) -> str | None:
        if issubclass(model, ReadOnlyModel):
            raise OrdersAreReadOnly("write")
        return None

    def allow_migrate(self, db: str, app_label: str, **_: Any) -> bool | None:
        """Refused in the orders database, and for this app everywhere: it owns no table."""
        return False if db == conf().database or app_label == "exports" else None
