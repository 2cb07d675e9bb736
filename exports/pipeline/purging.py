"""Purge: what nobody needs any more leaves the disks. Only by hand or by a timer, never in a worker.

Ended tasks past their time are removed by name, as the sweep does. Files of tasks that Redis does not know go when they
are older than any task is kept, and only while spool, store and Redis belong together (`identity`).
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from exports import storage
from exports.conf import conf
from exports.pipeline import endings, identity, sweep
from exports.state.keys import ref_of
from exports.state.store import store
from exports.telemetry import logs
from exports.views import TaskView

_events = logs.events(__name__)
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Purged:
    """Task ids by place (`spool`, `store`). refusal: why nothing was removed; empty when that was allowed.

    kept: unknown tasks that are still too young.
    """

    refusal: str = ""
    expired: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def purge(*, dry_run: bool) -> Purged:
    """One pass. dry_run: tell which unknown tasks would go; the expired ones are then left alone too."""
    refusal = identity.settle()
    if refusal:
        return Purged(refusal)
    expired = {} if dry_run else _clean_up()
    unknown = {name: identity.unknown(root) for name, root in identity.roots().items()}
    old = {name: tuple(id_ for id_ in ids if _is_old(name, id_)) for name, ids in unknown.items()}
    if not dry_run:
        for name, task_ids in old.items():
            for task_id in task_ids:
                _remove(name, task_id)
    kept = {name: tuple(id_ for id_ in ids if id_ not in old[name]) for name, ids in unknown.items()}
    return Purged(expired=expired, unknown=old, kept=kept)


def forget(view: TaskView) -> None:
    """Remove one ended task: its files, then its keys. Raises: StateUnavailable, StoreUnavailable, StepBroken."""
    endings.free(view.task_id, view.request)
    storage.artifacts().delete(view.task_id)
    store().erase(ref_of(view.task_id, view.request))
    _events.info("task.forgotten", taskId=view.task_id)


def _clean_up() -> dict[str, tuple[str, ...]]:
    """What the sweep frees now, by place."""
    before = {name: root.task_ids() for name, root in identity.roots().items()}
    sweep.clean_up()
    after = {name: set(root.task_ids()) for name, root in identity.roots().items()}
    return {name: tuple(id_ for id_ in ids if id_ not in after[name]) for name, ids in before.items()}


def _is_old(name: str, task_id: str) -> bool:
    """Older than any task is kept, by its id and by its files: either may be young where a backup was restored."""
    made_at_s = identity.made_at_s(task_id)
    if made_at_s is None:
        return False
    newest = max(made_at_s, identity.roots()[name].changed_at(task_id))
    return time.time() - newest > conf().state_days * _DAY_S


def _remove(name: str, task_id: str) -> None:
    if name == "spool":
        storage.spool().remove(task_id)
    else:
        storage.artifacts().delete(task_id)
    _events.info("task.purged", taskId=task_id, place=name)
