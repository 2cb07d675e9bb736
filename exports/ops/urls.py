"""The root URLconf puts these under `ops/`. The namespace is `admin`: the admin's templates ask for it."""

from django.urls import path

from exports.ops.site import site

urlpatterns = [path("", site.urls)]
