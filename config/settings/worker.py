"""Settings of worker processes: neither REST framework nor admin is loaded."""

from config.settings.base import *  # noqa: F403  # a Django settings module is its names
