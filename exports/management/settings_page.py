"""`docs/settings.md`, made from the table in `exports.conf`."""

from collections.abc import Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from exports.conf import Conf

_HEAD = """\
# Settings

Made by `python manage.py export_settings > docs/settings.md` from `exports/conf.py`; a test keeps the two equal.

Each is an environment variable: `EXPORTS_` and the name in capitals (`EXPORTS_PAGE_ROWS=1000`). Lists are comma-separated. A wrong value, or an `EXPORTS_`
variable that nobody knows, stops the start with its name. In a Django project of your own the same names stand in the dict `EXPORTS` of the settings.
The variables that are not settings of the package (`DATABASE_URL`, `SECRET_KEY` …): [architecture.md](architecture.md#configuration).

All processes of an installation run with the same values. `business_zone`, `header_language`, `charset`, `delimiter`, `formula_guard`, `sheet_rows`,
`sheet_title` and the columns are frozen in a task when it is planned: after a change a failed task can only run again from scratch.

| setting | default | allowed | effect |
|---|---|---|---|
"""


def page() -> str:
    """The whole page as Markdown."""
    return _HEAD + "".join(f"{row(spec)}\n" for spec in fields(Conf))


def rows() -> list[dict[str, Any]]:
    """Name, default, bounds and effect of every setting."""
    return [
        {"name": spec.name, "default": default(spec), "allowed": allowed(spec), "effect": spec.metadata["effect"]}
        for spec in fields(Conf)
    ]


def row(spec: "Field[Any]") -> str:
    text = default(spec)
    shown = f"`{text}`" if text else "none"
    return f"| `{spec.name}` | {shown} | {allowed(spec)} | {spec.metadata['effect']} |".replace("\t", "\\t")


def default(spec: "Field[Any]") -> str:
    """As it would stand in the environment."""
    value = spec.default
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return value.as_posix() if isinstance(value, Path) else str(value)


def allowed(spec: "Field[Any]") -> str:
    low, high, choices = (spec.metadata[name] for name in ("low", "high", "choices"))
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    if isinstance(spec.default, bool):
        return "`yes`, `no`"
    if low is not None and high is not None:
        return f"{low:,} to {high:,}"
    return f"at least {low:,}" if low is not None else ""
