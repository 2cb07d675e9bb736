"""Settings of the tests."""

SECRET_KEY = "only-for-tests"
USE_TZ = True
TIME_ZONE = "UTC"
INSTALLED_APPS: list[str] = []
DATABASES = {"default": {"ENGINE": "django.db.backends.dummy"}}

EXPORTS = {
    "settle_lag_s": 0,
    "xmin_wait_s": 1,
    "lease_ms": 2000,
    "renew_every_ms": 200,
    "slice_ms": 2000,
    "sweep_every_ms": 100,
    "retry_delays_ms": (50, 100, 200),
    "cancel_grace_ms": 500,
}
