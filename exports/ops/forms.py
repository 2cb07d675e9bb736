"""The forms of the site: which tasks, and why something is done to them."""

import datetime as dt
from typing import Any

from django import forms
from django.http import QueryDict

from exports.contracts import Format, State
from exports.errors import FieldInvalid
from exports.messages import CAUSES, NOT_A_CHOICE, NOT_A_FILTER, TOO_LONG
from exports.operations.listing import Wanted
from exports.ops.language import language_in_use
from exports.ops.page import say
from exports.ops.texts import STATES
from exports.service import REASON_MAX

_STALLED = "stalled"
_AGES = {
    "within_1h": dt.timedelta(hours=1),
    "within_1d": dt.timedelta(days=1),
    "within_3d": dt.timedelta(days=3),
    "before_10m": dt.timedelta(minutes=10),
    "before_1h": dt.timedelta(hours=1),
    "before_1d": dt.timedelta(days=1),
}
_TEXT_MAX = 255


class FilterForm(forms.Form):
    """Which tasks. Whoever misspells a filter gets none of them: without it, it would be all."""

    q = forms.CharField(required=False, max_length=_TEXT_MAX)
    state = forms.ChoiceField(required=False)
    owner = forms.CharField(required=False, max_length=_TEXT_MAX)
    format = forms.ChoiceField(required=False)
    age = forms.ChoiceField(required=False)
    code = forms.ChoiceField(required=False)

    def __init__(self, data: QueryDict) -> None:
        super().__init__(data, auto_id="filter-%s")
        language = language_in_use()
        order = (State.FAILED, State.RUNNING, _STALLED, State.QUEUED, State.SUCCEEDED, State.CANCELLED)
        names = {**{state.value: text.say(language) for state, text in STATES.items()}, _STALLED: say("stalled")}
        choices = {
            "state": [(str(state), names[state]) for state in order],
            "format": [(output.value, output.value.upper()) for output in Format],
            "age": [(name, say(name)) for name in _AGES],
            "code": [(code, f"{text.say(language)} ({code})") for code, text in CAUSES.items()],
        }
        for name, offered in choices.items():
            self.fields[name].choices = [("", say("any")), *offered]  # type: ignore[attr-defined]  # a ChoiceField
        for name, field in self.fields.items():
            field.label = say("search" if name == "q" else name)
            field.error_messages |= {"invalid_choice": NOT_A_CHOICE, "max_length": TOO_LONG}

    def wanted(self) -> Wanted:
        """What the fields ask for. Raises: FieldInvalid for one that nobody knows or whose value is wrong."""
        unknown = next((name for name in self.data if name not in self.fields), None)
        if unknown is not None:
            raise FieldInvalid(unknown, NOT_A_FILTER)
        for name, reasons in self.errors.items():
            raise FieldInvalid(name, str(reasons[0]))
        given = self.cleaned_data
        age = given.get("age", "")
        state = given.get("state", "")
        return Wanted(
            state=State(state) if state and state != _STALLED else None,
            stalled=state == _STALLED,
            owner=given.get("owner", ""),
            format=Format(given["format"]) if given.get("format") else None,
            code=given.get("code", ""),
            text=given.get("q", ""),
            changed_within=_AGES[age] if age.startswith("within") else None,
            changed_before=_AGES[age] if age.startswith("before") else None,
        )


class ReasonForm(forms.Form):
    """Why an operator does something. tasks: ids with spaces between them, those that the preview showed."""

    tasks = forms.CharField(widget=forms.HiddenInput)
    reason = forms.CharField(max_length=REASON_MAX)

    def __init__(self, data: QueryDict | None = None, *, initial: dict[str, Any] | None = None) -> None:
        super().__init__(data, initial=initial, auto_id="action-%s")
        self.fields["reason"].label = say("reason")
        self.fields["reason"].help_text = say("reason_help")
