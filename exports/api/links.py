"""Download links: a signature over task, asker, epoch and expiry, made at each read and kept nowhere."""

import math
import time
from dataclasses import dataclass
from urllib.parse import urlencode

from django.core.signing import BadSignature, Signer
from rest_framework.request import Request

from exports.api.identity import Identity, known_rights, rights_in_force
from exports.api.problems import LinkExpired, LinkInvalid
from exports.conf import conf
from exports.contracts import Principal, Right

PARAMETER = "link"
_SALT = "exports.api.download"
_ROUND_S = 60
_RIGHTS = (Right.VIEW, Right.OPS_READ)


@dataclass(frozen=True, slots=True)
class Link:
    """What a link was signed for. principal: who asked, with the rights to read that it had then."""

    principal: Principal
    epoch: int


def sign(task_id: str, *, principal: Principal, epoch: int, now_s: float) -> str:
    """The query of a link that lives `link_minutes`, rounded up to the next full minute.

    The same within that minute, so that a task that has not changed is answered with 304.
    """
    expires = math.ceil((now_s + conf().link_minutes * 60) / _ROUND_S) * _ROUND_S
    rights = [right.value for right in _RIGHTS if principal.may(right)]
    return urlencode({PARAMETER: Signer(salt=_SALT).sign_object([task_id, principal.owner, rights, epoch, expires])})


def read(text: str, *, task_id: str, now_s: float) -> Link:
    """Raises: LinkInvalid (forged, or of another task), LinkExpired."""
    try:
        signed_task, owner, rights, epoch, expires = Signer(salt=_SALT).unsign_object(text)
    except BadSignature as error:
        raise LinkInvalid from error
    if signed_task != task_id:
        raise LinkInvalid
    if now_s >= expires:
        raise LinkExpired
    return Link(Principal(owner, known_rights(rights)), epoch)


class LinkOrIdentity(Identity):
    """A link stands in for every other credential. What its owner may do is looked up again at the click."""

    def authenticate(self, request: Request) -> tuple[Principal, object] | None:
        text = request.query_params.get(PARAMETER)
        if text is None:
            return super().authenticate(request)
        link = read(text, task_id=request.parser_context["kwargs"]["task_id"], now_s=time.time())
        in_force = rights_in_force(link.principal.owner)
        if in_force is None:
            return link.principal, link
        return Principal(link.principal.owner, link.principal.rights & in_force), link
