"""The only reader of the environment, read once.

Every setting of `exports.conf` is `EXPORTS_` and its name in capitals; the others are the fields of `Environment`.
A wrong value stops the start with the variable's name, an `EXPORTS_` variable that nobody knows too.
"""

import functools
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from exports import conf
from exports.errors import SettingInvalid

PREFIX = "EXPORTS_"

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
_REDIS = ("redis", "rediss", "unix")

_OWN = (
    *("SECRET_KEY", "DEBUG", "HTTPS", "PROXY_HEADER", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "DATABASE_URL"),
    "DJANGO_SETTINGS_MODULE",
)
"""Variables of this product without its prefix, and the one that `choose_settings` sets."""

_OF_COMMANDS = "config.settings.web"
"""The settings that `manage.py` chooses; workers have others."""

_LIBRARY_DEFAULTS = {
    # One message in work and none waiting behind it, so that another process takes the next hint. Never set
    # dramatiq_delay_queue_prefetch: a low one stops the heartbeat of a busy worker.
    "dramatiq_queue_prefetch": "1",
    # Pause before a consumer connects again.
    "dramatiq_restart_delay": "1000",
    # numpy starts a thread a core for linear algebra, which no page needs.
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class Environment:
    """What the process was started with. The metadata names the variable."""

    secret_key: str = field(repr=False)
    debug: bool
    https: bool
    proxy_header: str
    allowed_hosts: tuple[str, ...]
    csrf_trusted_origins: tuple[str, ...]
    database_url: str = field(repr=False)
    broker_url: str = field(repr=False)
    cache_url: str = field(repr=False)
    log_json: bool
    log_level: str
    loopback_demo: bool
    supervisor_pid: int
    web_bind: str
    web_threads: int
    ops_users: Mapping[str, Any] = field(repr=False)
    exports: Mapping[str, Any] = field(repr=False)


@functools.cache
def environment() -> Environment:
    """The environment of this process. Raises: SettingInvalid with the variable's name."""
    return read(os.environ)


def read(variables: Mapping[str, str]) -> Environment:
    """An `Environment` out of a mapping. Raises: SettingInvalid with the name of a wrong variable."""
    _refuse_unknown(variables)
    source = _Source(variables)
    debug = source.flag("DEBUG", default=False)
    found = Environment(
        secret_key=source.text("SECRET_KEY"),
        debug=debug,
        https=source.flag("HTTPS", default=not debug),
        proxy_header=source.text("PROXY_HEADER"),
        allowed_hosts=source.parts("ALLOWED_HOSTS", default="localhost,127.0.0.1,[::1]"),
        csrf_trusted_origins=source.parts("CSRF_TRUSTED_ORIGINS"),
        database_url=source.text("DATABASE_URL", default="sqlite:///var/orders.sqlite3"),
        broker_url=source.redis("EXPORTS_BROKER_URL", default="redis://127.0.0.1:6379/0"),
        cache_url=source.redis("EXPORTS_CACHE_URL", default="redis://127.0.0.1:6379/2"),
        log_json=source.choice("EXPORTS_LOG_FORMAT", "json", "text") == "json",
        log_level=source.choice("EXPORTS_LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR"),
        loopback_demo=source.flag("EXPORTS_LOOPBACK_DEMO", default=False),
        supervisor_pid=source.number("EXPORTS_SUPERVISOR_PID", default=0, low=0),
        web_bind=source.text("EXPORTS_WEB_BIND", default="127.0.0.1:8000"),
        web_threads=source.number("EXPORTS_WEB_THREADS", default=16, low=4),
        ops_users=source.json_object("EXPORTS_OPS_USERS"),
        exports=_read_conf(source),
    )
    _check_together(found)
    return found


def choose_settings(module: str) -> None:
    """Use these Django settings unless DJANGO_SETTINGS_MODULE names others."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", module)


def set_library_defaults() -> None:
    """Set what libraries read from the environment at their import, where the operator has not."""
    for name, value in _LIBRARY_DEFAULTS.items():
        os.environ.setdefault(name, value)


def set_service_name() -> None:
    """Name this product in its spans, where the operator has not."""
    os.environ.setdefault("OTEL_SERVICE_NAME", "order-exports")


def for_child(changes: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child process: this one's without what configures this product, and `changes`."""
    kept = {name: text for name, text in os.environ.items() if name not in _OWN and not name.startswith(PREFIX)}
    return {**kept, **changes}


def for_worker(changes: Mapping[str, str]) -> dict[str, str]:
    """The environment of a worker of this installation: this process's own, and `changes`."""
    kept = {name: text for name, text in os.environ.items() if (name, text) != ("DJANGO_SETTINGS_MODULE", _OF_COMMANDS)}
    return {**kept, **changes}


class _Source:
    """Typed reads of text; an empty variable counts as one that is not set."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, name: str, *, default: str = "") -> str:
        return self._variables.get(name, "").strip() or default

    def parts(self, name: str, *, default: str = "") -> tuple[str, ...]:
        return _split(self.text(name, default=default))

    def flag(self, name: str, *, default: bool) -> bool:
        text = self.text(name)
        return _flag(name, text) if text else default

    def number(self, name: str, *, default: int, low: int) -> int:
        number = _number(name, self.text(name, default=str(default)))
        if number < low:
            raise SettingInvalid(name, f"must be at least {low}")
        return number

    def choice(self, name: str, default: str, *others: str) -> str:
        text = self.text(name, default=default)
        if text not in (default, *others):
            raise SettingInvalid(name, f"must be one of {', '.join((default, *others))}")
        return text

    def redis(self, name: str, *, default: str) -> str:
        text = self.text(name, default=default)
        _redis_database(name, text)
        return text

    def json_object(self, name: str) -> Mapping[str, Any]:
        text = self.text(name)
        found = _json(name, text) if text else {}
        if not isinstance(found, dict):
            raise SettingInvalid(name, "must be a JSON object or the path of a file that holds one")
        return found


def _refuse_unknown(variables: Mapping[str, str]) -> None:
    """A name that is spelt wrong would be a default that nobody wanted."""
    known = {PREFIX + spec.name.upper() for spec in fields(conf.Conf)} | {
        f"{PREFIX}{name}"
        for name in (
            *("BROKER_URL", "CACHE_URL", "LOG_FORMAT", "LOG_LEVEL", "LOOPBACK_DEMO", "OPS_USERS"),
            *("SUPERVISOR_PID", "WEB_BIND", "WEB_THREADS"),
        )
    }
    for name in variables:
        if name.startswith(PREFIX) and name not in known:
            raise SettingInvalid(name, "is not a setting of exports")


def _read_conf(source: _Source) -> dict[str, Any]:
    """The values for `settings.EXPORTS`, checked; only what is set."""
    values = {}
    for spec in fields(conf.Conf):
        name = PREFIX + spec.name.upper()
        text = source.text(name)
        if text:
            values[spec.name] = _value(name, text, spec=spec)
    try:
        conf.load(values)
    except SettingInvalid as wrong:
        raise SettingInvalid(PREFIX + wrong.name.upper(), wrong.reason) from None
    return values


def _value(name: str, text: str, *, spec: "Field[Any]") -> Any:
    if spec.name in ("tokens", "callbacks"):
        return _objects(name, text)
    if spec.name.endswith("_delays_ms"):
        return tuple(_number(name, part) for part in _split(text))
    if spec.name == "delimiter":
        return text.replace(r"\t", "\t")
    convert = _CONVERTERS.get(type(spec.default))
    return text if convert is None else convert(name, text)


def _objects(name: str, text: str) -> tuple[Mapping[str, Any], ...]:
    found = _json(name, text)
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise SettingInvalid(name, "must be a JSON list of objects or the path of a file that holds one")
    return tuple(found)


def _json(name: str, text: str) -> Any:
    """JSON given in place (it starts with a bracket) or in a file. What is wrong is told without the text: it is secret."""
    try:
        return json.loads(text if text[0] in "[{" else Path(text).read_text("utf-8"))
    except OSError as error:
        raise SettingInvalid(name, f"names a file that cannot be read: {error.strerror}") from None
    except ValueError:
        raise SettingInvalid(name, "is not JSON") from None


def _flag(name: str, text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise SettingInvalid(name, f"must be one of {', '.join((*_TRUE, *_FALSE))}")


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.removeprefix("-").isdigit()):
        raise SettingInvalid(name, "must be a whole number")
    return int(text)


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


_CONVERTERS: Mapping[type, Callable[[str, str], Any]] = {
    bool: _flag,
    int: _number,
    tuple: lambda _, text: _split(text),
    type(Path()): lambda _, text: Path(text),
}


def _redis_database(name: str, url: str) -> tuple[str, str]:
    """Server and database that a URL means; two spellings of one are equal."""
    parts = urlsplit(url)
    if parts.scheme not in _REDIS:
        raise SettingInvalid(name, "must be a redis://, rediss:// or unix:// URL")
    if parts.scheme == "unix":
        return parts.path, dict(pair.partition("=")[::2] for pair in parts.query.split("&")).get("db", "0")
    try:
        server = f"{(parts.hostname or 'localhost').replace('localhost', '127.0.0.1')}:{parts.port or 6379}"
    except ValueError:
        raise SettingInvalid(name, "has no right port") from None
    database = parts.path.strip("/") or "0"
    if not database.isdigit():
        raise SettingInvalid(name, "must end in the number of a database")
    return server, database


def _check_together(found: Environment) -> None:
    """State, broker and cache apart: clearing a cache flushes its whole database."""
    state = str(found.exports.get("redis_url", conf.Conf().redis_url))
    taken: set[tuple[str, str]] = set()
    for name, url in (
        ("EXPORTS_REDIS_URL", state),
        ("EXPORTS_BROKER_URL", found.broker_url),
        ("EXPORTS_CACHE_URL", found.cache_url),
    ):
        database = _redis_database(name, url)
        if database in taken:
            raise SettingInvalid(name, "state, broker and cache must be different databases")
        taken.add(database)
