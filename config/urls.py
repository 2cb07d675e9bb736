"""All URLs: the API at the root, the operators' page under `ops/`."""

from django.urls import include, path

from exports.api import urls as api

urlpatterns = [path("ops/", include("exports.ops.urls")), path("", include(api))]

handler400 = api.handler400
handler404 = api.handler404
handler500 = api.handler500
