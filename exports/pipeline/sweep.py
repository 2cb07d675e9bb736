"""Sweep: what makes the promise hold when processes die. In every worker, at its start and every few seconds.

Takes leases back from workers that are gone, completes old cancels, tells ends that nobody told, wakes workers for
callbacks and for what could be claimed, and cleans up after ended tasks. Every action is one transition of its own, so that two sweeps do no harm and a sweep
that dies half way is simply followed by the next.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from exports import storage
from exports.callbacks import CallbackEvent
from exports.conf import conf
from exports.contracts import QueueName, State, Step
from exports.errors import SettingInvalid, StepFailed, StoreUnavailable
from exports.pipeline import endings, hints, identity, manifest, outbox, workers
from exports.state.keys import TaskRef, ref_of
from exports.state.replies import Lease
from exports.state.store import store
from exports.telemetry import logs
from exports.views import TaskView

_events = logs.events(__name__)
_HOUR_MS = 3_600_000
_STORE_PAUSE_MS = 30_000
_PROPOSALS = 100


def sweep(*, boot: bool = False) -> None:
    """One pass, unless another process has made one lately and nobody of this host has died.

    boot: look at every lease there is, and do not wait for the lock.
    """
    workers.current().beat()
    due = boot or store().take_sweep_lock(workers.current().name, conf().sweep_every_ms)
    if not due and not storage.spool().dead_workers():
        return
    recover(store().scan_running if boot else lambda: store().in_state(State.RUNNING))
    end_stuck()
    tell_ends()
    with _tolerated("callbacks.unsettled"):
        outbox.wake()
    top_up_hints()
    clean_up()
    with _tolerated("spool.unmeasured"):
        measure_spool()
    if boot or store().known_identity() is None:  # also when Redis was emptied under living workers
        with _tolerated("identity.unsettled"):
            identity.settle()


def recover(find_tasks: Callable[[], Sequence[str]]) -> None:
    """Give the steps of dead workers back to pending.

    Who is dead is found out before the tasks and their leases are read, and only they are buried: the file of a
    worker whose lease nobody has taken back yet is the proof that another sweep needs.
    """
    now_ms, dead = store().now_ms(), storage.spool().dead_workers()
    held = [(task_id, lease) for task_id, leases in store().leases(find_tasks()).items() for lease in leases]
    lost = [(task_id, lease) for task_id, lease in held if lease.worker in dead or lease.expiry_ms < now_ms]
    if lost:
        beats = _last_beats([lease for _, lease in held], [lease for _, lease in lost], dead)
        for task_id, lease in lost:
            with _tolerated("recovery.failed"):
                view = store().read(task_id)
                if view is not None:
                    proven, counted = lease.worker in dead, _lost_alone(lease.worker, beats, dead)
                    _recover(view, lease, proven=proven, counted=counted)
    for worker in dead:
        store().forget_worker(worker, reason="died")
    storage.spool().bury(dead)


def _last_beats(held: Iterable[Lease], lost: Iterable[Lease], dead: frozenset[str]) -> dict[str, int]:
    """Worker → when it last renewed its lease (ms): all that hold one, and those that lapsed not long ago."""
    beats = {lease.worker: lease.expiry_ms - conf().lease_ms for lease in held}
    lapsed = {lease.worker: beats[lease.worker] for lease in lost if lease.worker not in dead}
    return store().remember_lapsed(lapsed, life_ms=2 * conf().lease_ms) | beats


def _lost_alone(worker: str, beats: Mapping[str, int], dead: frozenset[str]) -> bool:
    """Whether the page may be to blame: several workers that a host lost at once died of something else.

    At once: proved dead in the same pass; or silent since the same moment, whichever lease lapses first. A live
    worker has renewed since, and one that died of the same page later has held its lease later.
    """
    others = {other for other in beats if workers.host_of(other) == workers.host_of(worker)} - {worker}
    if worker in dead:
        return not others & dead
    return all(abs(beats[other] - beats[worker]) > conf().renew_every_ms for other in others)


def _recover(view: TaskView, lease: Lease, *, proven: bool, counted: bool) -> None:
    word = store().recover(_ref(view), lease, proven=proven, counted=counted)
    if word in ("lost", "alive"):  # another sweep was faster, or the worker has just renewed
        return
    with logs.bound(taskId=view.task_id, traceId=view.trace_id):
        _events.warning("step.recovered", step=lease.step, answer=word, worker=lease.worker, proven=proven)
        endings.settle(view.task_id, view.request, word, code="poison")


def end_stuck() -> None:
    """Tasks whose cancel is old, that nobody can go on with, or that have run for too long; mark and move the slow."""
    spools = {sign.spool for sign in store().workers().values()}
    for task_id in (*store().in_state(State.QUEUED), *store().in_state(State.RUNNING)):
        with _tolerated("ending.failed"):
            view = store().read(task_id)
            if view is not None:
                _look_at(view)
                _fail_if_stranded(view, alive=view.spool in spools)


def _fail_if_stranded(view: TaskView, *, alive: bool) -> None:
    """alive: whether its spool has a worker. One that had none for a while is told when it has one again."""
    if view.spool and (view.stranded or not alive):
        _settle_failure(view, store().fail_stranded(_ref(view), alive=alive), code="spool_lost")


def _look_at(view: TaskView) -> None:
    if view.cancel_requested_at is not None:
        complete_cancel(view)
    elif view.foreign:
        _settle_failure(view, store().fail_foreign(_ref(view)), code="specification_changed")
    elif view.run_ms >= conf().max_runtime_s * 1000:
        _settle_failure(view, store().fail_overdue(_ref(view)), code="max_runtime")
    elif is_stalled(view):
        mark_stalled(view)
    elif view.run_ms >= _turn_ms(view):
        store().move(_ref(view))


def _turn_ms(view: TaskView) -> float:
    """How long a task may be worked on in its queue."""
    limits = {QueueName.FAST: conf().fast_s, QueueName.NORMAL: conf().normal_s}
    return limits[view.queue] * 1000 if view.queue in limits else math.inf


def is_stalled(view: TaskView) -> bool:
    """Whether a running task has made no progress for longer than is in order."""
    if view.state is not State.RUNNING or view.progress_at is None:
        return False
    return view.read_at - view.progress_at >= dt.timedelta(seconds=conf().stalled_after_s)


def mark_stalled(view: TaskView) -> None:
    """Tell a stall, count it once, and wake a worker for the task: it is proposed before all others.

    Told before it is counted, since a callback is kept once however often it is told: a kill in between costs none.
    """
    if view.stalled_at is not None:
        return
    with logs.bound(taskId=view.task_id, traceId=view.trace_id):
        # The sweep says where the endpoints are wrong; a reader is answered all the same.
        with suppress(SettingInvalid):
            outbox.event(view, CallbackEvent.STALLED)
        if store().mark_stalled(_ref(view)) != "stalled":
            return
        _events.warning("task.stalled", phase=view.phase, processed=view.processed)
        hints.send(hints.work_of(view), traceparent=view.traceparent)


def _ref(view: TaskView) -> TaskRef:
    return ref_of(view.task_id, view.request)


def _settle_failure(view: TaskView, word: str, *, code: str) -> None:
    with logs.bound(taskId=view.task_id, traceId=view.trace_id):
        endings.settle(view.task_id, view.request, word, code=code)


def complete_cancel(view: TaskView) -> bool:
    """End a task whose cancel is old enough; whether it ended here."""
    word = store().complete_cancel(_ref(view))
    with logs.bound(taskId=view.task_id, traceId=view.trace_id):
        endings.settle(view.task_id, view.request, word)
    return word == State.CANCELLED


def tell_ends() -> None:
    """Tell the ends that the process which heard of them first has not told by now."""
    for task_id in store().untold(store().now_ms() - conf().sweep_every_ms):
        with _tolerated("ending.failed"):
            view = store().read(task_id)
            if view is None:
                outbox.keep_end(task_id)
                continue
            with logs.bound(taskId=task_id, traceId=view.trace_id):
                endings.settle(task_id, view.request, view.state, code=view.failure.code if view.failure else "")


def top_up_hints() -> None:
    """Send hints for what could be claimed and has none."""
    now_ms = store().now_ms()
    for step in Step:
        tasks: dict[hints.Work, list[str]] = {}
        for found in store().next_tasks(step, _PROPOSALS):
            tasks.setdefault(hints.work(step, queue=found.queue, spool=found.spool), []).append(found.task_id)
        for work, task_ids in tasks.items():
            hints.top_up(work, due=store().due_steps(step, task_ids, now_ms))


def measure_spool() -> None:
    """Note its size for those who watch, once a minute."""
    if store().spool_is_due() and (size := storage.spool().size()):
        store().keep_spool_size(*size)


def clean_up() -> None:
    """Free what ended tasks still hold, and forget the expired ones."""
    now_ms = store().now_ms()
    store().forget_minutes(now_ms)
    for task_id, owner in store().due_cleanups(now_ms):
        if not _try_clean_up(task_id, owner, now_ms):
            break
    with _tolerated("cleanup.failed"):
        _free_here()


def _free_here() -> None:
    """Free what ended tasks hold on the disk of this host: a process of another host may have ended them."""
    if storage.spool().remote:
        return
    for task_id, state in store().states(storage.spool().task_ids()).items():
        if state in (State.SUCCEEDED, State.CANCELLED):
            storage.spool().remove(task_id)


def _try_clean_up(task_id: str, owner: str, now_ms: int) -> bool:
    """Whether to go on with others: a store that is away takes its time at each call, and leases wait for the sweep."""
    away = False
    with _tolerated("cleanup.failed"):
        try:
            _clean_up(task_id, owner, now_ms)
        except StoreUnavailable:
            away = True
            store().settle_cleanup(task_id, owner, due_ms=now_ms + _STORE_PAUSE_MS)
            raise
    return not away


@contextmanager
def _tolerated(event: str) -> Iterator[None]:
    """A disk or store that fails one thing must not keep the sweep from the others; it is tried again."""
    try:
        yield
    except (StepFailed, SettingInvalid, OSError, ValueError) as error:
        _events.error(event, error=error)


def _clean_up(task_id: str, owner: str, now_ms: int) -> None:
    view = store().read(task_id)
    if view is None:
        storage.spool().remove(task_id)
        storage.artifacts().delete(task_id)
        store().forget(task_id, owner)
        return
    if view.state.ended:
        _free_ended(view)
    store().settle_cleanup(task_id, owner, due_ms=_next_cleanup_ms(view, now_ms))


def _free_ended(view: TaskView) -> None:
    if view.state is State.CANCELLED or view.deleted:
        endings.free(view.task_id, view.request)
        storage.artifacts().delete(view.task_id)
    elif view.state is State.SUCCEEDED:
        storage.spool().remove(view.task_id)
        expires_at = endings.file_expires_at(view)
        expired = expires_at is not None and expires_at <= view.read_at
        storage.artifacts().delete(view.task_id, keep=() if expired else manifest.objects(view.object_key))


def _next_cleanup_ms(view: TaskView, now_ms: int) -> int | None:
    """When to look again: the last holder of a task may still write for a while; a file expires before its task."""
    if view.finished_at is None or view.expires_at is None:
        return None
    ended_ms = _ms(view.finished_at)
    times = [] if view.state is State.FAILED else [ended_ms + conf().lease_ms, ended_ms + _HOUR_MS]
    expires_at = endings.file_expires_at(view)
    times += [_ms(expires_at)] if expires_at else []
    return min((time for time in times if time > now_ms), default=_ms(view.expires_at) + 1)


def _ms(moment: dt.datetime) -> int:
    return round(moment.timestamp() * 1000)
