"""Checks at the start of a process that serves: Django's own command line is not there to run them."""

from django.core import checks

from config import env
from exports.conf import conf
from exports.errors import SettingInvalid, StateUnavailable
from exports.telemetry import logs, spans

_events = logs.events(__name__)


def refuse_missing_secret_key() -> None:
    """Raises: SettingInvalid. Only the web process signs; workers and commands do without the key."""
    if not env.environment().secret_key:
        raise SettingInvalid("SECRET_KEY", "is needed: it signs download links and sessions")


def refuse_wrong_configuration() -> None:
    """Run Django's system checks. Raises: SettingInvalid with the id and text of every check that failed."""
    wrong = [message for message in checks.run_checks() if message.is_serious()]
    if wrong:
        raise SettingInvalid("configuration", "; ".join(f"{message.id} {message.msg}" for message in wrong))


def refuse_unfit_redis() -> None:
    """Raises: SettingInvalid when Redis may lose the only copy of the state. One that is away is waited for, not refused."""
    from exports import service  # needs loaded apps

    try:
        problems = service.redis_problems()
    except StateUnavailable as error:
        _events.warning("redis.unchecked", error=error)
        return
    if problems and not env.environment().debug:
        raise SettingInvalid("EXPORTS_REDIS_URL", "; ".join(problems))


def start_tracing() -> None:
    """Record spans, where the settings say so. Raises: SettingInvalid when the packages for it are missing."""
    if conf().tracing:
        env.set_service_name()
        spans.start()
