"""The site at `/ops/`: Django's admin frame and login around pages of our own, none of its models.

It offers no address that would read a table: the admin's own index reads its log, its password form writes.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_http_methods
from django.views.i18n import set_language

from exports.contracts import Right
from exports.errors import ExportError
from exports.ops import actions, pages, texts
from exports.ops.backend import principal_of
from exports.ops.language import language_in_use
from exports.ops.page import Page, refused, stale_form
from exports.ops.texts import WORDS

Show = Callable[..., Page | HttpResponseBase]
View = Callable[..., HttpResponseBase]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing inline and nothing from elsewhere runs: a text that slips through as markup does no harm."""


def refused_form(request: HttpRequest, reason: str = "") -> HttpResponseBase:  # noqa: ARG001  Django passes it by name
    """`CSRF_FAILURE_VIEW`: only pages of the site have forms."""
    response = site.rendered(request, stale_form())
    response["Content-Security-Policy"] = POLICY
    return response


class OpsSite(AdminSite):
    login_form = AuthenticationForm  # the admin's own asks for `is_staff`, which operators do not have
    site_url = None
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        principal = principal_of(request.user)
        return principal is not None and principal.may(Right.OPS_READ)

    def get_urls(self) -> list[URLPattern | URLResolver]:
        return [
            path("", self._page(pages.overview_page), name="index"),
            path("tasks/", self._page(pages.tasks_page), name="tasks"),
            path("tasks/<str:task_id>/", self._page(pages.task_page), name="task"),
            path("tasks/<str:task_id>/download/", self._page(pages.download), name="download"),
            path("tasks/<str:task_id>/manifest/", self._page(pages.manifest_page), name="manifest"),
            path("tasks/<str:task_id>/manifest.json", self._page(pages.download_manifest), name="manifest-file"),
            path("actions/<str:action>/", self._page(actions.action_page, acts=True), name="action"),
            path("runbook/", self._page(pages.runbook_page), name="runbook"),
            path("language/", _protected(self.admin_view(set_language)), name="language"),
            path("login/", _protected(self.login), name="login"),
            path("logout/", _protected(self.admin_view(self.logout)), name="logout"),
            path("<path:rest>", self._page(pages.missing_page), name="missing"),
        ]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        language = language_in_use()
        site = WORDS["site"].say(language)
        return {
            **super().each_context(request),
            "has_permission": self.has_permission(request),
            "site_header": site,
            "site_title": site,
            "t": texts.in_language(language),
        }

    def _page(self, show: Show, *, acts: bool = False) -> View:
        """A view for a page: asks for the login and the right, renders what the page shows, explains a refusal."""

        @require_http_methods(["GET", "HEAD", "POST"] if acts else ["GET", "HEAD"])
        def view(request: HttpRequest, **given: str) -> HttpResponseBase:
            answer = _answer(show, request, right=Right.OPS_ACT if acts else Right.OPS_READ, given=given)
            return self.rendered(request, answer) if isinstance(answer, Page) else answer

        return _protected(self.admin_view(view))

    def rendered(self, request: HttpRequest, page: Page) -> TemplateResponse:
        context = {**self.each_context(request), "title": page.title, **page.context}
        return TemplateResponse(request, page.template, context, status=page.status)


def _answer(show: Show, request: HttpRequest, *, right: Right, given: Mapping[str, str]) -> Page | HttpResponseBase:
    principal = principal_of(request.user)
    if principal is None or not principal.may(right):
        return refused(None)
    try:
        return show(request, principal, **given)
    except ExportError as error:
        return refused(error)


def _protected(view: View) -> View:
    @wraps(view)
    def with_policy(request: HttpRequest, **given: Any) -> HttpResponseBase:
        response = view(request, **given)
        response["Content-Security-Policy"] = POLICY
        return response

    return with_policy


site = OpsSite(name="admin")
