"""The operators' site under the Django of the tests, as `config.settings.web` sets it up, and operators to log in."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from django.contrib.auth.hashers import MD5PasswordHasher, make_password
from django.test import Client, override_settings
from django.urls import include, path

from tests.services import Valkey

PASSWORD = "correct horse battery staple"
RIGHTS = {"olga": ["ops.read", "ops.act"], "rita": ["ops.read"], "nobody": []}

urlpatterns = [path("ops/", include("exports.ops.urls"))]


def users() -> dict[str, Any]:
    """What `EXPORTS_OPS_USERS` holds, with a hash that is cheap to compare."""
    password = make_password(PASSWORD, hasher=MD5PasswordHasher())
    return {name: {"password": password, "rights": rights} for name, rights in RIGHTS.items()}


@contextmanager
def served(valkey: Valkey, users: dict[str, Any]) -> Iterator[None]:
    """Sessions are in database 2."""
    with override_settings(
        ROOT_URLCONF=__name__,
        EXPORTS_OPS_USERS=users,
        AUTHENTICATION_BACKENDS=["exports.ops.backend.SettingsBackend"],
        INSTALLED_APPS=[
            "django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "django.contrib.messages",
            "django.contrib.staticfiles", "django.contrib.admin.apps.SimpleAdminConfig", "exports",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware", "django.middleware.locale.LocaleMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware", "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[{
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {"context_processors": [
                "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]},
        }],
        CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": valkey.url(2)}},
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        CSRF_FAILURE_VIEW="exports.ops.site.refused_form",
        SESSION_ENGINE="django.contrib.sessions.backends.cache",
        MESSAGE_STORAGE="django.contrib.messages.storage.session.SessionStorage",
        LANGUAGES=[("zh-hans", "简体中文"), ("en", "English")],
        LANGUAGE_CODE="zh-hans",
        STATIC_URL="/static/",
    ):  # fmt: skip
        yield


def login(client: Client, name: str = "olga", password: str = PASSWORD) -> Any:
    return client.post("/ops/login/?next=/ops/", {"username": name, "password": password})


def operator(name: str = "olga", **headers: str) -> Client:
    """A client that is logged in and reads English."""
    client = Client(headers={"accept-language": "en", **headers})
    assert login(client, name).status_code == 302
    return client


def copy_ended_task(client: "redis.Redis[bytes]", task_id: str, *, count: int) -> None:
    """Copies of one succeeded task, under their own ids."""
    now = int(time.time() * 1000)
    with client.pipeline(transaction=False) as pipe:
        for number in range(count):
            copy = f"exp_{number:026d}"
            for name in ("task", "shards", "events"):
                pipe.copy(f"export:{name}:{task_id}", f"export:{name}:{copy}")
            pipe.zadd("export:index:succeeded", {copy: now - number})
        pipe.execute()
