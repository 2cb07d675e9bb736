"""`manage.py export_codes`: every code that an answer can carry, as the page of the docs."""

from typing import Any

from exports.management.base import Answer, ExportCommand
from exports.messages import CAUSES, ISSUES, PROBLEMS

_INTRO = """\
# Codes

Made by `python manage.py export_codes > docs/codes.md` from the table that makes the answers; a test keeps the two equal. A code keeps its
meaning for ever; its sentence follows `Accept-Language` and may be worded better. New codes may come: treat an unknown one by its status.

## Refusals

`code` of problem details. A refusal changed nothing. `{names}` are facts of the case.

| status | code | English | Chinese |
|---|---|---|---|"""

_FAILED = """
## Failed tasks

`errorCode` of a task that is `failed`; what to do about each: [operations.md](operations.md#error-codes). Partial trouble is told in `warnings` of a task
that succeeded.

| code | English | Chinese |
|---|---|---|"""


_ISSUES = """
## Dry runs

`code` of what `POST /api/orders/export/validate` finds.

| code | English | Chinese |
|---|---|---|"""


class Command(ExportCommand):
    help = "Prints docs/codes.md: every code of a refusal and of a failed task, in both languages."

    def answer(self, given: dict[str, Any]) -> Answer:
        problems = sorted(PROBLEMS.items(), key=lambda item: (item[1].status, item[0]))
        refusals = [f"| {text.status} | `{code}` | {text.detail.en} | {text.detail.zh} |" for code, text in problems]
        failures = [f"| `{code}` | {text.en} | {text.zh} |" for code, text in sorted(CAUSES.items())]
        issues = [f"| `{code}` | {text.en} | {text.zh} |" for code, text in sorted(ISSUES.items())]
        data = {"refusals": {code: text.status for code, text in problems}, "failures": sorted(CAUSES)}
        return Answer([_INTRO, *refusals, _FAILED, *failures, _ISSUES, *issues], data)
