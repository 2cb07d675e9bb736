"""The page of an action: first what will happen to which tasks, then, with a reason, that."""

import re
from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse

from exports.contracts import Principal
from exports.errors import FieldInvalid, TaskUnknown
from exports.messages import NOT_EMPTY, NOT_TASK_IDS, REQUIRED
from exports.operations import actions, listing
from exports.operations.actions import Action, Effect, Order, Outcome
from exports.ops import audit, rows
from exports.ops.forms import FilterForm, ReasonForm
from exports.ops.page import Page, say, why

_TASK_ID = re.compile(r"\w{1,64}", re.ASCII)


def action_page(request: HttpRequest, principal: Principal, *, action: str) -> Page | HttpResponseBase:
    """GET shows what would happen to the task, or to all that match the filter. POST does it to those that were shown."""
    if action not in set(Action):
        raise TaskUnknown
    if request.method != "POST":
        task_ids, capped = _asked(request)
        return _preview(Action(action), task_ids, principal=principal, capped=capped)
    form = ReasonForm(request.POST)
    task_ids = _task_ids(request.POST.get("tasks", ""))
    if not form.is_valid():
        return _preview(Action(action), task_ids, principal=principal, form=form)
    return _do(request, Order(Action(action), form.cleaned_data["reason"]), task_ids, principal=principal)


def _asked(request: HttpRequest) -> tuple[list[str], bool]:
    """The tasks, and whether more match. Raises: FieldInvalid where no task and no filter is named: it would be all."""
    if not request.GET:
        raise FieldInvalid("task", REQUIRED)
    for name, text in request.GET.items():
        if not str(text).strip():
            raise FieldInvalid(name, NOT_EMPTY)
    if list(request.GET) == ["task"]:
        return _task_ids(request.GET["task"]), False
    found = listing.find(FilterForm(request.GET).wanted(), limit=actions.MOST)
    return [view.task_id for view in found.tasks], bool(found.more)


def _task_ids(text: str) -> list[str]:
    """Each once. Raises: FieldInvalid for what can be no id."""
    found = list(dict.fromkeys(text.split()))
    if not all(_TASK_ID.fullmatch(task_id) for task_id in found):
        raise FieldInvalid("task", NOT_TASK_IDS)
    return found


def _preview(
    action: Action, task_ids: list[str], *, principal: Principal, capped: bool = False, form: ReasonForm | None = None
) -> Page:
    effects = actions.preview(Order(action), task_ids, principal=principal)
    able = [effect for effect in effects if effect.refusal is None]
    context = {
        "action": action.value,
        "effects": [(rows.task_row(effect.task), _effect_text(action, effect), effect.refusal) for effect in effects],
        "count": say("tasks_count", count=len(able)),
        "able": bool(able),
        "capped": say("capped", most=actions.MOST) if capped else "",
        "form": form or ReasonForm(initial={"tasks": " ".join(effect.task.task_id for effect in able)}),
        "back": _back(task_ids),
    }
    return Page("ops/action.html", say(action.value), context)


def _effect_text(action: Action, effect: Effect) -> str:
    if effect.refusal:
        return say("stays", why=why(effect.refusal))
    if action in (Action.CANCEL, Action.DELETE):
        return say(f"would_{action}")
    if action is Action.REPLAY:
        return say("would_replay", callbacks=", ".join(effect.callbacks))
    if effect.rows is None:
        return say("would_plan")
    if not effect.shards:
        return say("would_finish")
    return say("would_read", shards=f"{effect.shards:,}", rows=f"{effect.rows:,}", kept=f"{effect.kept:,}")


def _do(request: HttpRequest, order: Order, task_ids: list[str], *, principal: Principal) -> HttpResponseBase:
    outcomes = actions.carry_out(order, task_ids, principal=principal)
    done = [outcome for outcome in outcomes if outcome.task]
    for outcome in done:
        _record(request, order, outcome, principal=principal)
    if done:
        messages.success(request, say("did", action=say(order.action), count=len(done)))
    for outcome in outcomes:
        if outcome.refusal:
            messages.warning(request, say("refused_one", task=outcome.task_id, why=why(outcome.refusal)))
        if outcome.file_left:
            messages.warning(request, say("file_left", task=outcome.task_id))
    gone = order.action is Action.DELETE and done
    return HttpResponseRedirect(reverse("admin:tasks") if gone else _back(task_ids))


def _record(request: HttpRequest, order: Order, outcome: Outcome, *, principal: Principal) -> None:
    task = outcome.task
    assert task is not None
    reruns = order.action in (Action.RERUN, Action.SCRATCH)
    facts = {"fromScratch": order.action is Action.SCRATCH} if reruns else {}
    results: dict[Action, Sequence[str]] = {
        Action.CANCEL: [task.state],
        Action.DELETE: ["deleted"],
        Action.REPLAY: outcome.callbacks,
    }
    for result in results.get(order.action, [f"run {task.epoch}"]):
        audit.record(
            request,
            Action.RERUN if reruns else order.action,
            principal=principal,
            task_id=outcome.task_id,
            trace_id=task.trace_id,
            result=result,
            reason=order.reason,
            **facts,
        )


def _back(task_ids: list[str]) -> str:
    return reverse("admin:task", args=task_ids) if len(task_ids) == 1 else reverse("admin:tasks")
