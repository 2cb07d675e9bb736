"""`/demo/`: a front end in three small files, for the demo alone. It asks nothing but the public API."""

from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse

_FOLDER = Path(__file__).parent / "page_files"
_TYPES = {"index.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'"
)


def show(request: HttpRequest, name: str = "index.html") -> HttpResponse:  # noqa: ARG001  Django passes it
    if name not in _TYPES:
        raise Http404
    response = HttpResponse((_FOLDER / name).read_bytes(), content_type=f"{_TYPES[name]}; charset=utf-8")
    response["Content-Security-Policy"] = _POLICY
    response["Cache-Control"] = "no-cache"
    return response
