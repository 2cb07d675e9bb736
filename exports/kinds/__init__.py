"""What can be exported. `get` finds a kind by the name that a task carries."""

import functools

from django.utils.module_loading import import_string

from exports.conf import conf
from exports.errors import SettingInvalid
from exports.kinds.base import Kind


def get(name: str) -> Kind:
    """Raises: SettingInvalid when no configured kind has this name."""
    for kind in _configured():
        if kind.name == name:
            return kind
    raise SettingInvalid("kinds", f"no kind is named {name!r}")


def names() -> tuple[str, ...]:
    """Names of the kinds, in the order of the setting; the first serves `POST /api/orders/export`."""
    return tuple(kind.name for kind in _configured())


def _configured() -> list[Kind]:
    return [_load(path) for path in conf().kinds]


@functools.cache
def _load(path: str) -> Kind:
    """One object a class: a kind keeps its compiled statements."""
    try:
        kind: Kind = import_string(path)()
    except ImportError as error:
        raise SettingInvalid("kinds", f"{path} cannot be imported") from error
    return kind
