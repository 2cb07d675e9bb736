"""What shapes the bytes of a file, as this process would make it now."""

from exports import kinds
from exports.conf import conf
from exports.contracts import ExportRequest, Specification

RENDERER = 1
"""Raised by every change of the code that changes bytes: a task planned before it is then `foreign`."""


def specify(request: ExportRequest) -> Specification:
    """The specification of a request under the settings in force."""
    settings = conf()
    columns = tuple(kinds.get(request.kind).columns)
    return Specification(
        kind=request.kind,
        format=request.format,
        columns=columns,
        masked=tuple(column.name for column in columns if column.personal) if request.masked else (),
        zone=settings.business_zone,
        header_language=settings.header_language,
        charset=settings.charset,
        delimiter=settings.delimiter,
        formula_guard=settings.formula_guard,
        sheet_rows=settings.sheet_rows,
        sheet_title=settings.sheet_title,
        renderer=RENDERER,
    )
