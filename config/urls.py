"""All URLs: the API at the root, the operators' page under `ops/`, the example front end only in the demo."""

from django.conf import settings
from django.urls import include, path

from config.demo import page
from exports.api import urls as api

_demo = [path("demo/", page.show), path("demo/<str:name>", page.show)] if settings.EXPORTS_LOOPBACK_DEMO else []
urlpatterns = [path("ops/", include("exports.ops.urls")), *_demo, path("", include(api))]

handler400 = api.handler400
handler404 = api.handler404
handler500 = api.handler500
