"""Checks at the start of a process that serves: Django's own command line is not there to run them."""

from django.core import checks

from config import env
from exports.errors import SettingInvalid


def refuse_missing_secret_key() -> None:
    """Raises: SettingInvalid. Only the web process signs; workers and commands do without the key."""
    if not env.environment().secret_key:
        raise SettingInvalid("SECRET_KEY", "is needed: it signs download links and sessions")


def refuse_wrong_configuration() -> None:
    """Run Django's system checks. Raises: SettingInvalid with the id and text of every check that failed."""
    wrong = [message for message in checks.run_checks() if message.is_serious()]
    if wrong:
        raise SettingInvalid("configuration", "; ".join(f"{message.id} {message.msg}" for message in wrong))
