"""What a kind's declaration must be like, told by name at start: a wrong one would break a file, or a row, much later."""

from collections.abc import Mapping, Sequence

from django.db import models

from exports.contracts import CellType, Column
from exports.errors import SettingInvalid
from exports.kinds.orders.source import Source

_NUMBERS = (models.IntegerField, models.DecimalField, models.FloatField)
# Text in a number's cell makes a workbook that Excel must repair; MariaDB shows "?" for bytes that are no text.
_FIELDS: dict[CellType, tuple[type, ...]] = {
    CellType.INTEGER: (models.IntegerField,),
    CellType.DECIMAL: _NUMBERS,
    CellType.MONEY: _NUMBERS,
    CellType.FLOAT: _NUMBERS,
    CellType.BOOLEAN: (models.BooleanField,),
    CellType.DATE: (models.DateField,),
    CellType.DATETIME: (models.DateTimeField,),
    CellType.BYTES: (models.BinaryField,),
}
# A cursor holds the key as its cell shows it.
_KEYS: Mapping[type, tuple[CellType, ...]] = {
    models.IntegerField: (CellType.INTEGER, CellType.IDENTIFIER, CellType.TEXT),
    models.UUIDField: (CellType.UUID,),
    models.CharField: (CellType.IDENTIFIER, CellType.TEXT),
}


def check(name: str, source: Source, *, columns: Sequence[Column]) -> None:
    """Raises: SettingInvalid with the name of the kind and the rule that it breaks."""
    key = source.field(source.key)
    shown = next((types for field, types in _KEYS.items() if isinstance(key, field)), ())
    if not shown:
        raise SettingInvalid("kinds", f"{name}: the primary key must be a whole number, a UUID or text")
    if source.key_rises and not isinstance(key, models.IntegerField):
        raise SettingInvalid("kinds", f"{name}: only whole numbers rise with time: set key_rises = False")
    if columns[0].name != key.name:
        raise SettingInvalid("kinds", f"{name}: the first column must be the key, {key.name}")
    if columns[0].type not in shown:
        allowed = " or ".join(kind.name for kind in shown)
        raise SettingInvalid("kinds", f"{name}: the key {key.name} must be shown as {allowed}")
    for column in columns:
        field = source.field(column.name)
        if field is None:
            raise SettingInvalid("kinds", f"{name}: the model has no field {column.name}")
        if not fits(field, column.type):
            raise SettingInvalid("kinds", f"{name}: {column.name} is a {type(field).__name__}, no {column.type.name}")


def fits(field: object, kind: CellType) -> bool:
    """Whether every value of the field is one of the type; text can show anything but bytes."""
    if kind not in _FIELDS:
        return not isinstance(field, models.BinaryField)
    if kind is CellType.DATE and isinstance(field, models.DateTimeField):
        return False  # to Django it is a date as well
    return isinstance(field, _FIELDS[kind])
