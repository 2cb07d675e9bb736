"""The configuration of the demo's children, in the variables that `config.env` reads."""

import json
import shlex
from collections.abc import Mapping

from django.contrib.auth.hashers import make_password

from config.demo.place import Passwords, Place, write_private

OPERATOR = "operator"
"""Who may log in to the ops page of the demo."""


def variables(
    place: Place,
    *,
    passwords: Passwords,
    valkey_url: str,
    database_url: str,
    store: Mapping[str, str],
    web_bind: str,
    rows: int,
) -> dict[str, str]:
    """The API without authentication, which this product allows on loopback only, and there only for a demo."""
    return {
        "SECRET_KEY": passwords.secret_key,
        "HTTPS": "no",
        "DATABASE_URL": database_url,
        "EXPORTS_BROKER_URL": f"{valkey_url}/0",
        "EXPORTS_REDIS_URL": f"{valkey_url}/1",
        "EXPORTS_CACHE_URL": f"{valkey_url}/2",
        "EXPORTS_SPOOL_DIR": str(place.root / "spool"),
        **store,
        "EXPORTS_AUTH": "none",
        "EXPORTS_LOOPBACK_DEMO": "yes",
        "EXPORTS_OPS_USERS": json.dumps(
            {OPERATOR: {"password": make_password(passwords.operator), "rights": ["ops.read", "ops.act"]}}
        ),
        "EXPORTS_WEB_BIND": web_bind,
        "EXPORTS_MAX_ROWS": str(max(rows, 5_000_000)),
    }


def keep(place: Place, values: Mapping[str, str]) -> str:
    """Write the variables for a shell, so that `manage.py` commands reach the demo; the file's path."""
    path = place.root / "environment.sh"
    write_private(path, "".join(f"export {name}={shlex.quote(text)}\n" for name, text in values.items()))
    return str(path)
