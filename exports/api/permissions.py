"""What a principal may do at an address. Nothing is allowed that a view does not name."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from exports.contracts import Principal


class HasRight(BasePermission):
    """The view's `rights` name, by method, those of which one is enough.

    For known principals only, OPTIONS and a method that the view does not answer (to its 405) are let through.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        principal = request.user
        if not isinstance(principal, Principal):
            return False
        method = request.method or ""
        if method == "OPTIONS" or method.lower() not in view.http_method_names or not hasattr(view, method.lower()):
            return True
        return any(principal.may(right) for right in view.rights.get(method, ()))


class IsKnown(BasePermission):
    """Any principal."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(request.user, Principal)
