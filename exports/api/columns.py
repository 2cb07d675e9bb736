"""The columns of the file in the published schema, out of the same declaration that makes the file."""

from typing import Any

from exports import kinds
from exports.formats import description

_OPERATION = "download"


def describe(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A hook of drf-spectacular: the description of the download ends with a table for each configured kind."""
    tables = [f"Columns of `{name}`:\n\n{description.table(kinds.get(name).columns)}" for name in kinds.names()]
    for operation in (found for path in result["paths"].values() for found in path.values()):
        if operation["operationId"] == _OPERATION:
            operation["description"] = "\n\n".join([operation["description"], *tables])
    return result
