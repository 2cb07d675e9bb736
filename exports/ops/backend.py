"""Operators from settings: a name, a password hash and rights. Nothing is read from or written to a database."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.hashers import check_password, make_password
from django.http import HttpRequest

from exports.contracts import Principal, Right
from exports.models import OpsUser


def _entries() -> Mapping[str, Any]:
    entries: Mapping[str, Any] = getattr(settings, "EXPORTS_OPS_USERS", {})
    return entries


class SettingsBackend(BaseBackend):
    """Logs in the users of `EXPORTS_OPS_USERS`. Who is taken out of the settings is logged out at the next request."""

    def authenticate(
        self, request: HttpRequest | None, username: str | None = None, password: str | None = None, **_: Any
    ) -> OpsUser | None:
        entry = _entries().get(username or "")
        if entry is None:
            make_password(password)  # as slow as a known name, so that time tells nobody which names exist
            return None
        return self.get_user(username or "") if check_password(password, entry["password"]) else None

    def get_user(self, user_id: Any) -> OpsUser | None:
        entry = _entries().get(user_id)
        return OpsUser(id=user_id, password=entry["password"]) if entry else None


def principal_of(user: object) -> Principal | None:
    """What an operator who is logged in may do; None for anybody else."""
    if not isinstance(user, OpsUser):
        return None
    entry = _entries().get(user.pk)
    return Principal(user.pk, frozenset(Right(right) for right in entry["rights"])) if entry else None
