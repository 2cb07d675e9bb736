"""The orders database out of its URL: read-only in intent, bounded in time, one zone.

The hard guards (read-only sessions, statement timeouts) are set by the kind on each new connection.
"""

from typing import Any
from urllib.parse import quote

import dj_database_url

from exports.errors import SettingInvalid

CONNECT_TIMEOUT_S = 5
KEEP_S = 300
_MARIADB_READ_LIMIT_S = 120
"""Above every statement's own limit; it ends a read whose server vanished without closing the connection."""


def orders(url: str, *, business_zone: str) -> dict[str, Any]:
    """The entry of `DATABASES`. Raises: SettingInvalid for a URL that Django has no backend for."""
    try:
        config: dict[str, Any] = dict(dj_database_url.parse(url, conn_max_age=KEEP_S, conn_health_checks=True))
    except ValueError:
        # The URL holds a password: say nothing of it.
        raise SettingInvalid("DATABASE_URL", "is not a database URL that is known here") from None
    shape = _SHAPES.get(config["ENGINE"].rpartition(".")[2])
    if shape is None:
        raise SettingInvalid("DATABASE_URL", "must name a PostgreSQL, MySQL, MariaDB or SQLite database")
    shape(config, business_zone)
    return config


def _postgresql(config: dict[str, Any], business_zone: str) -> None:
    # PostgreSQL turns its time stamps into this zone when it makes their text.
    config["TIME_ZONE"] = business_zone
    config["DISABLE_SERVER_SIDE_CURSORS"] = True
    config["OPTIONS"] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": "order-exports",
        "keepalives": 1,
        # Data that nobody acknowledges: without it a vanished server holds a lane for a quarter of an hour.
        "tcp_user_timeout": 30_000,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        **config.get("OPTIONS", {}),
    }


def _mysql(config: dict[str, Any], _: str) -> None:
    import pymysql  # only where the orders live in MySQL or MariaDB

    pymysql.install_as_MySQLdb()
    config["OPTIONS"] = {
        "charset": "utf8mb4",
        "connect_timeout": CONNECT_TIMEOUT_S,
        "read_timeout": _MARIADB_READ_LIMIT_S,
        **config.get("OPTIONS", {}),
    }


def _sqlite(config: dict[str, Any], _: str) -> None:
    """A file that is never made or changed: a missing one is an error, not an empty database."""
    name = str(config["NAME"])
    if name and name != ":memory:":
        config["NAME"] = f"file:{quote(name)}?mode=ro"
        config["OPTIONS"] = {"uri": True, **config.get("OPTIONS", {})}


_SHAPES = {"postgresql": _postgresql, "mysql": _mysql, "sqlite3": _sqlite}
