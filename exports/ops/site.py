"""The site at `/ops/`: Django's admin frame and login, none of its models.

It offers no address that would read a table: the admin's own index reads its log, its password form writes.
"""

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, path

from exports.contracts import Right
from exports.ops.backend import principal_of


class OpsSite(AdminSite):
    site_header = site_title = "订单导出 · 运维"
    index_title = "任务"
    index_template = "ops/index.html"
    login_form = AuthenticationForm  # the admin's own asks for `is_staff`, which operators do not have
    site_url = None
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        principal = principal_of(request.user)
        return principal is not None and principal.may(Right.OPS_READ)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        return [
            path("", self.admin_view(self.index), name="index"),
            path("login/", self.login, name="login"),
            path("logout/", self.admin_view(self.logout), name="logout"),
        ]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().each_context(request), "has_permission": self.has_permission(request)}


site = OpsSite(name="admin")
