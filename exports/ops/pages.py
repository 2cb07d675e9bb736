"""The pages that only show: overview, list, one task, its manifest, runbook; and the downloads of file and manifest."""

import datetime as dt
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

import exports
from exports import service
from exports.conf import conf
from exports.contracts import Principal, Right, State
from exports.errors import FieldInvalid
from exports.operations import listing, overview
from exports.operations.actions import Action
from exports.ops import audit, rows
from exports.ops.forms import FilterForm
from exports.ops.language import language_in_use
from exports.ops.page import Page, missing, say, why
from exports.ops.texts import QUEUES, STATES
from exports.pipeline import manifest
from exports.views import TaskView

_PAGE = 50
_ACTIONS = {
    State.FAILED: {Action.RERUN, Action.SCRATCH, Action.CANCEL, Action.DELETE},
    State.RUNNING: {Action.CANCEL},
    State.QUEUED: {Action.CANCEL},
    State.SUCCEEDED: {Action.DELETE},
    State.CANCELLED: {Action.DELETE},
}
"""What can be done to a task in a state; a replay, where it has callbacks."""


def overview_page(_request: HttpRequest, _principal: Principal) -> Page:
    seen = overview.overview()
    language = language_in_use()
    counts = [
        (State.RUNNING, STATES[State.RUNNING].say(language), seen.states[State.RUNNING]),
        (State.QUEUED, STATES[State.QUEUED].say(language), seen.states[State.QUEUED]),
        ("stalled", say("stalled"), seen.stalled),
        (State.FAILED, STATES[State.FAILED].say(language), seen.states[State.FAILED]),
    ]
    context = {
        "counts": [{"mark": str(mark), "name": name, "count": count} for mark, name, count in counts],
        "rows_per_second": seen.rows_per_second,
        "oldest": _span(seen.oldest_queued) if seen.oldest_queued is not None else "",
        "queues": [(QUEUES[queue.name].say(language), queue.tasks, queue.hints) for queue in seen.queues],
        "workers": seen.workers,
        "chart": rows.chart(seen.minutes),
        "running": [rows.task_row(view) for view in seen.running],
        "failed": [rows.task_row(view) for view in seen.failed],
        "updated": _updated(seen.at),
    }
    return Page("ops/overview.html", say("overview"), context)


def tasks_page(request: HttpRequest, principal: Principal) -> Page:
    given = request.GET.copy()
    behind = given.pop("behind", [""])[-1]
    form = FilterForm(given)
    try:
        wanted = form.wanted()
    except FieldInvalid as error:
        return Page("ops/tasks.html", say("tasks"), {"form": form, "wrong": why(error), "chosen": True}, status=400)
    found = listing.find(wanted, limit=_PAGE, behind=behind)
    chosen = {name: text for name, text in form.cleaned_data.items() if text}
    context = {
        "form": form,
        "rows": [rows.task_row(view) for view in found.tasks],
        "chosen": bool(chosen),
        "first": f"?{urlencode(chosen)}" if behind else "",
        "next": f"?{urlencode({**chosen, 'behind': found.more})}" if found.more else "",
        "actions": _offered(principal, set(Action)) if found.tasks and chosen else [],
        "actions_query": urlencode(chosen),
        "updated": _updated(found.tasks[0].read_at if found.tasks else dt.datetime.now(dt.UTC)),
    }
    return Page("ops/tasks.html", say("tasks"), context)


def task_page(_request: HttpRequest, principal: Principal, *, task_id: str) -> Page:
    found = service.read_details(task_id, principal=principal)
    view = found.task
    context = {
        "task": rows.task_row(view),
        "facts": _facts(view),
        "cancelling": view.cancel_requested_at is not None,
        "failure": rows.failure_row(view.failure, found.shards) if view.failure else None,
        "phases": rows.phase_rows(view, found.steps),
        "shards": [rows.shard_row(shard, now=view.read_at) for shard in found.shards],
        "callbacks": [rows.callback_row(callback) for callback in reversed(found.callbacks)],
        "events": [rows.event_row(event) for event in reversed(found.events)],
        "audit": [rows.audit_row(entry) for entry in reversed(found.audit)],
        "has_file": service.keeps_file(view),
        "view": view,
        "log_query": f"journalctl -u 'order-exports-*' -o cat | jq -c 'select(.traceId == \"{view.trace_id}\")'",
        "actions": _offered(principal, _ACTIONS[view.state] | ({Action.REPLAY} if found.callbacks else set())),
        "actions_query": urlencode({"task": task_id}),
        "updated": _updated(view.read_at),
    }
    return Page("ops/task.html", f"{say('task')} {task_id}", context)


def download(request: HttpRequest, principal: Principal, *, task_id: str) -> HttpResponseBase:
    """The file of any owner's task, streamed or from where the store serves it."""
    artifact = service.open_file(task_id, principal=principal)
    audit.record(
        request, "download", principal=principal, task_id=task_id, trace_id=artifact.trace_id, result="whole file"
    )
    disposition = content_disposition_header(as_attachment=True, filename=artifact.file_name) or "attachment"
    link = artifact.link(disposition)
    if link is not None:
        return HttpResponseRedirect(link)
    response = StreamingHttpResponse(artifact.read(0, artifact.size), content_type=artifact.content_type)
    response["Content-Length"] = str(artifact.size)
    response["Content-Disposition"] = disposition
    return response


def manifest_page(_request: HttpRequest, principal: Principal, *, task_id: str) -> Page:
    """What the file of a task promises. A page of its own, since it reads the store, which may hang."""
    found = manifest.load(service.read_manifest(task_id, principal=principal))
    facts = {
        "as_of": rows.moment(found.snapshot.as_of),
        "rows": f"{sum(entry.rows for entry in found.shards):,}",
        "size": f"{found.size:,} B",
        "sha256": found.sha256,
    }
    context = {
        "task_id": task_id,
        "facts": [(say(name), text) for name, text in facts.items()],
        "shards": [rows.manifest_row(entry) for entry in found.shards],
    }
    return Page("ops/manifest.html", f"{say('manifest')} {task_id}", context)


def download_manifest(_request: HttpRequest, principal: Principal, *, task_id: str) -> HttpResponseBase:
    """The manifest as it is stored."""
    text = service.read_manifest(task_id, principal=principal)
    disposition = f'attachment; filename="{task_id}.manifest.json"'
    return HttpResponse(text, content_type="application/json", headers={"Content-Disposition": disposition})


def runbook_page(_request: HttpRequest, _principal: Principal) -> Page:
    """`docs/operations.md` as it is written, with an anchor at each heading and at each error code."""
    path = Path(exports.__file__).parents[1] / "docs" / "operations.md"
    text = path.read_text("utf-8") if path.is_file() else say("no_runbook")
    lines = [(line, _anchor(line)) for line in text.splitlines()]
    return Page("ops/runbook.html", say("runbook"), {"lines": lines})


def missing_page(_request: HttpRequest, _principal: Principal, *, rest: str) -> Page:  # noqa: ARG001  # in the address
    return missing()


def _anchor(line: str) -> str:
    """`disk_full` for the row or heading of that code; words with hyphens for another heading."""
    code = re.match(r"(?:\| |#+ )`(\w+)`", line)
    if code:
        return code[1]
    return re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") if line.startswith("#") else ""


def _offered(principal: Principal, possible: set[Action]) -> list[tuple[str, str]]:
    """(action, its name) that a page offers; none to those who may only read."""
    may = principal.may(Right.OPS_ACT)
    return [(action.value, say(action.value)) for action in Action if may and action in possible]


def _facts(view: TaskView) -> list[tuple[str, str]]:
    """Name and value of what is known of a task."""
    facts: Mapping[str, str] = {
        "created": rows.moment(view.created_at),
        "started": rows.moment(view.started_at),
        "finished": rows.moment(view.finished_at),
        "kept_until": rows.moment(view.expires_at),
        "queue": QUEUES[view.queue].say(language_in_use()) if view.queue else "",
        "as_of": rows.moment(view.as_of),
        "run": str(view.epoch),
        "request_id": view.request.request_id,
        "trace_id": view.trace_id,
        "file": view.file_name,
        "size": f"{view.file_size:,} B" if view.file_size is not None else "",
        "drift": view.drift.told() if view.drift else "",
        "warnings": ", ".join(f"{warning.code} {warning.count:,}" for warning in view.warnings),
    }
    return [(say(name), text) for name, text in facts.items() if text]


def _span(age: dt.timedelta) -> str:
    return str(dt.timedelta(seconds=round(age.total_seconds())))


def _updated(at: dt.datetime) -> str:
    return say("updated", time=rows.moment(at)[11:], zone=conf().business_zone)
