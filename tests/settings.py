"""Settings of the tests: no web, no broker; the orders databases are added by fixtures at run time."""

import pymysql

from exports.api import defaults

pymysql.install_as_MySQLdb()

SECRET_KEY = "only-for-tests"
USE_TZ = True
TIME_ZONE = "UTC"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "exports"]
AUTH_USER_MODEL = "exports.OpsUser"
DATABASES = {
    "default": {"ENGINE": "django.db.backends.dummy"},
    "orders": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}
DATABASE_ROUTERS = ["exports.kinds.orders.router.ReadOnlyRouter"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

EXPORTS = {
    "settle_lag_s": 0,
    "xmin_wait_s": 1,
    "lease_ms": 2000,
    "renew_every_ms": 200,
    "slice_ms": 2000,
    "sweep_every_ms": 100,
    "retry_delays_ms": (50, 100, 200),
    "cancel_grace_ms": 500,
    "running_per_owner": 1000,
    "queued_per_owner": 1000,
    "submits_per_minute": 10_000,
}

REST_FRAMEWORK = defaults.REST_FRAMEWORK
SPECTACULAR_SETTINGS = defaults.SPECTACULAR_SETTINGS
