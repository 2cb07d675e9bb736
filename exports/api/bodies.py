"""What callers send, validated: the frozen submit body, the rerun body, the queries of list and delete."""

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any, Never

from rest_framework import serializers

from exports import messages
from exports.callbacks import REPLAY_ATTEMPTS, REPLAY_MULTIPLIER
from exports.contracts import Format, State
from exports.errors import FieldInvalid

TASK_ID = re.compile(r"exp_[0-9A-HJKMNP-TV-Z]{26}", re.ASCII)
"""`exp_` and a ULID in Crockford's base 32."""

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MOMENT = re.compile(r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]{1,6})?Z", re.ASCII)
_FIRST_DAY = dt.date(1970, 1, 1)
_LAST_DAY = dt.date(9998, 12, 31)
_MISSING: dict[str, Any] = {"required": messages.REQUIRED, "null": messages.REQUIRED}


class _Field(serializers.Field[Any, Any, Any, Any]):
    """Refuses with a sentence from `messages`; the framework's own follow the process's language, not the caller's."""

    def __init__(self, **options: Any) -> None:
        super().__init__(error_messages=_MISSING, **options)

    def to_representation(self, value: object) -> object:
        return value


def _refuse(reason: str) -> Never:
    raise serializers.ValidationError(reason)


class RequestIdField(_Field):
    """1 to 255 printable characters, after trimming."""

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            _refuse(messages.NOT_TEXT)
        text = data.strip()
        if not 1 <= len(text) <= 255 or not text.isprintable():
            _refuse(messages.NOT_PRINTABLE)
        return text


class DayField(_Field):
    """`YYYY-MM-DD` and nothing else that Python would also read."""

    def to_internal_value(self, data: object) -> dt.date:
        if not isinstance(data, str) or not _DAY.fullmatch(data):
            _refuse(messages.NOT_A_DAY)
        try:
            day = dt.date.fromisoformat(data)
        except ValueError:
            _refuse(messages.NOT_A_DAY)
        if not _FIRST_DAY <= day <= _LAST_DAY:
            _refuse(messages.DAY_OUT_OF_RANGE)
        return day


class ChoiceField(_Field):
    def __init__(self, choices: type[Format] | type[State], *, refusal: str, **options: Any) -> None:
        super().__init__(**options)
        self.choices = choices
        self.refusal = refusal

    def to_internal_value(self, data: object) -> Format | State:
        if not isinstance(data, str) or data not in set(self.choices):
            _refuse(self.refusal)
        return self.choices(data)


class LimitField(_Field):
    def to_internal_value(self, data: object) -> int:
        if not re.fullmatch(r"[0-9]{1,3}", str(data), re.ASCII) or not 1 <= int(str(data)) <= 100:
            _refuse(messages.NOT_A_LIMIT)
        return int(str(data))


class TaskIdField(_Field):
    def to_internal_value(self, data: object) -> str:
        if not TASK_ID.fullmatch(str(data)):
            _refuse(messages.NOT_A_TASK_ID)
        return str(data)


class MomentField(_Field):
    def to_internal_value(self, data: object) -> dt.datetime:
        if not _MOMENT.fullmatch(str(data)):
            _refuse(messages.NOT_A_MOMENT)
        try:
            return dt.datetime.fromisoformat(str(data))
        except ValueError:
            _refuse(messages.NOT_A_MOMENT)


class FlagField(_Field):
    def to_internal_value(self, data: object) -> bool:
        if not isinstance(data, bool):
            _refuse(messages.NOT_BOOLEAN)
        return data


class AttemptsField(_Field):
    def to_internal_value(self, data: object) -> int:
        if not isinstance(data, int) or isinstance(data, bool) or not 1 <= data <= 10:
            _refuse(messages.NOT_ATTEMPTS)
        return data


class MultiplierField(_Field):
    def to_internal_value(self, data: object) -> float:
        if not isinstance(data, int | float) or isinstance(data, bool) or not 1 <= data <= 10:
            _refuse(messages.NOT_A_MULTIPLIER)
        return float(data)


class CallbackIdField(_Field):
    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str) or not data:
            _refuse(messages.NOT_A_CALLBACK)
        return data


class DryRunBody(serializers.Serializer[Any]):
    """What shapes an export. `from` is a word of Python, so the fields are named in a method."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {"from": DayField(), "to": DayField(), "format": ChoiceField(Format, refusal=messages.NOT_A_FORMAT)}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["to"] < attrs["from"]:
            raise serializers.ValidationError({"to": messages.REVERSED})
        return attrs


class SubmitBody(DryRunBody):
    """The frozen request."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {"requestId": RequestIdField(), **super().get_fields()}


class RerunBody(serializers.Serializer[Any]):
    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {"fromScratch": FlagField(default=False)}


class ReplayBody(serializers.Serializer[Any]):
    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {
            "attempts": AttemptsField(default=REPLAY_ATTEMPTS),
            "backoffMultiplier": MultiplierField(default=REPLAY_MULTIPLIER),
            "callbackId": CallbackIdField(default=""),
        }


class ReplayFailedBody(serializers.Serializer[Any]):
    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {
            "since": MomentField(),
            "attempts": AttemptsField(default=REPLAY_ATTEMPTS),
            "backoffMultiplier": MultiplierField(default=REPLAY_MULTIPLIER),
        }


class ListQuery(serializers.Serializer[Any]):
    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {
            "state": ChoiceField(State, refusal=messages.NOT_A_STATE, default=None),
            "limit": LimitField(default=50),
            "before": TaskIdField(default=""),
            "changedSince": MomentField(default=None),
        }


class ReasonField(_Field):
    """Text; the service says how much of it."""

    def to_internal_value(self, data: object) -> str:
        if not isinstance(data, str):
            _refuse(messages.NOT_A_REASON)
        return data


class DeleteQuery(serializers.Serializer[Any]):
    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {"reason": ReasonField(default="")}


def validated(body: type[serializers.Serializer[Any]], data: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a body or query. Raises: FieldInvalid with every field that is wrong."""
    serializer = body(data=data)
    if not serializer.is_valid():
        wrong = {str(field): str(reasons[0]) for field, reasons in serializer.errors.items()}
        first, reason = next(iter(wrong.items()))
        raise FieldInvalid(first, reason, others=wrong)
    values: dict[str, Any] = serializer.validated_data
    return values


def with_idempotency_key(data: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """The body with the `Idempotency-Key` header in the place of a missing requestId. A quoted key is unquoted.

    Raises: FieldInvalid where body and header name different ids.
    Source: draft-ietf-httpapi-idempotency-key-header (the value is a structured string, in quotes).
    """
    body = dict(data)
    if key is None:
        return body
    name = key.strip()
    if len(name) >= 2 and name[0] == name[-1] == '"':
        name = name[1:-1]
    given = body.setdefault("requestId", name)
    if isinstance(given, str) and given.strip() != name.strip():
        raise FieldInvalid("requestId", messages.KEY_DIFFERS)
    return body
