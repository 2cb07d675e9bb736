"""Settings of the web process and of `manage.py`."""

from config import env
from config.settings.base import *  # noqa: F403  # a Django settings module is its names
from config.settings.base import EXPORTS, INSTALLED_APPS
from exports.api import defaults

_environment = env.environment()

INSTALLED_APPS = [
    *INSTALLED_APPS,
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "rest_framework",
    "drf_spectacular",
    "django_prometheus",
]
MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
LANGUAGES = [("zh-hans", "简体中文"), ("en", "English")]
APPEND_SLASH = False

ALLOWED_HOSTS = list(_environment.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(_environment.csrf_trusted_origins)

AUTHENTICATION_BACKENDS = ["exports.ops.backend.SettingsBackend"]
LOGIN_URL = "admin:login"
CSRF_FAILURE_VIEW = "exports.ops.site.refused_form"

# Sessions of operators live in the Redis cache: there is no table for them.
SESSION_ENGINE = "django.contrib.sessions.backends.cache"
SESSION_COOKIE_AGE = 8 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_HTTPONLY = True
LANGUAGE_COOKIE_SAMESITE = "Lax"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"

# HTTPS is off only where the service is reached over plain HTTP, as in the demo on loopback.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = LANGUAGE_COOKIE_SECURE = SECURE_SSL_REDIRECT = _environment.https
SECURE_HSTS_SECONDS = 365 * 24 * 3600 if _environment.https else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _environment.https
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_REFERRER_POLICY = "same-origin"
if _environment.proxy_header:
    SECURE_PROXY_SSL_HEADER = ("HTTP_" + _environment.proxy_header.upper().replace("-", "_"), "https")
X_FRAME_OPTIONS = "DENY"

STATIC_URL = "/static/"
WHITENOISE_USE_FINDERS = True

# A request has 8 KB at most (the API refuses earlier and by name); uploads do not exist.
DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 100

# Metrics of the ORM and the cache would wrap their backends; requests and our own counters are what is watched.
PROMETHEUS_EXPORT_MIGRATIONS = False

# Half of the threads are left for requests that are answered at once.
EXPORTS = {"long_requests": _environment.web_threads // 2, **EXPORTS}

REST_FRAMEWORK = defaults.REST_FRAMEWORK
SPECTACULAR_SETTINGS = defaults.SPECTACULAR_SETTINGS
