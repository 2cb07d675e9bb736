"""Server-sent events: the progress of a task as it changes, on the address of the task.

An event's id is the digest of its data, so that a reader who comes back with `Last-Event-ID` is told what it has not
seen. The stream ends with the task, or after some minutes; a browser then asks again by itself, and is answered with
204 when there is nothing more to come. Source: HTML, section 9.2.
"""

import time
from collections.abc import Callable, Generator

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from exports.api import slots
from exports.conf import conf
from exports.errors import RequestRefused, StateUnavailable
from exports.views import TaskView

_LOOK_EVERY_S = 0.5
_HEARTBEAT_S = 15
_COME_BACK_MS = 2000


class EventStream(BaseRenderer):
    """What `Accept: text/event-stream` asks for."""

    media_type = "text/event-stream"
    format = "events"
    charset = None


def wanted(request: Request) -> bool:
    return request.method == "GET" and isinstance(request.accepted_renderer, EventStream)


def follow(
    request: Request, view: TaskView, *, read: Callable[[], TaskView], tell: Callable[[TaskView], tuple[str, bytes]]
) -> HttpResponseBase:
    """read: the task anew. tell: digest and JSON of a task. Raises: Busy."""
    seen = request.META.get("HTTP_LAST_EVENT_ID", "")
    if view.state.ended and tell(view)[0] == seen:
        return HttpResponse(status=204)
    response = StreamingHttpResponse(
        slots.Held(_events(view, seen=seen, read=read, tell=tell)), content_type=EventStream.media_type
    )
    # A proxy that collects the answer would keep the events back.
    response["X-Accel-Buffering"] = "no"
    return response


def _events(
    view: TaskView, *, seen: str, read: Callable[[], TaskView], tell: Callable[[TaskView], tuple[str, bytes]]
) -> Generator[bytes, None, None]:
    yield b"retry: %d\n\n" % _COME_BACK_MS
    deadline = time.monotonic() + conf().stream_s
    told_at = time.monotonic()
    while True:
        digest, data = tell(view)
        if digest != seen:
            seen, told_at = digest, time.monotonic()
            yield b"id: %s\nevent: %s\ndata: %s\n\n" % (
                digest.encode(),
                b"end" if view.state.ended else b"progress",
                data,
            )
        elif time.monotonic() - told_at > _HEARTBEAT_S:
            told_at = time.monotonic()
            yield b": still there\n\n"
        if view.state.ended or time.monotonic() >= deadline:
            return
        time.sleep(_LOOK_EVERY_S)
        try:
            view = read()
        except (RequestRefused, StateUnavailable):
            # The reader comes back, and is told why.
            return
