"""What every process of the product shares: apps, databases, times, logs."""

from config import databases, env
from exports import conf
from exports.telemetry import logs

_environment = env.environment()
_business_zone = conf.load(_environment.exports).business_zone

SECRET_KEY = _environment.secret_key
DEBUG = _environment.debug

INSTALLED_APPS = ["config.apps.StartUp", "django.contrib.contenttypes", "django.contrib.auth", "exports"]
AUTH_USER_MODEL = "exports.OpsUser"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# There is no database to write to: the state lives in Redis, the orders are only read.
DATABASES = {
    "default": {"ENGINE": "django.db.backends.dummy"},
    "orders": databases.orders(_environment.database_url, business_zone=_business_zone),
}
DATABASE_ROUTERS = ["exports.kinds.orders.router.ReadOnlyRouter"]

CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": _environment.cache_url,
        "KEY_PREFIX": "export-cache",
        "OPTIONS": {"SOCKET_CONNECT_TIMEOUT": 2, "SOCKET_TIMEOUT": 5},
    }
}

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = True
LANGUAGE_CODE = "zh-hans"

LOGGING = logs.configuration(as_json=_environment.log_json, level=_environment.log_level)

EXPORTS = dict(_environment.exports)
EXPORTS_BROKER_URL = _environment.broker_url
EXPORTS_LOOPBACK_DEMO = _environment.loopback_demo
EXPORTS_OPS_USERS = dict(_environment.ops_users)
