"""What operators and machines ask of the whole service."""

from exports.contracts import Principal
from exports.pipeline import diagnosis, purging, sweep, workers
from exports.pipeline.diagnosis import Finding
from exports.pipeline.purging import Purged
from exports.service import access
from exports.state.store import Counters, store
from exports.state.watching import Signs


def read_counters() -> Counters:
    """What `/metrics` shows. Raises: StateUnavailable."""
    return store().counters()


def read_signs() -> Signs:
    """What all tasks and workers do now. Raises: StateUnavailable."""
    return store().signs()


def redis_problems() -> list[str]:
    """What makes this Redis unfit to hold the only copy of the state. Raises: StateUnavailable."""
    return store().server_problems()


def ping() -> None:
    """Raises: StateUnavailable."""
    store().ping()


def sweep_once() -> None:
    """One full pass of the sweep, as a worker does at its start. Raises: StateUnavailable."""
    sweep.sweep(boot=True)
    # A command is no worker: hints are counted by those that stay.
    store().forget_worker(workers.current().name)


def purge(*, dry_run: bool = False) -> Purged:
    """Remove what has expired and what nobody knows. Raises: StateUnavailable, StoreUnavailable."""
    return purging.purge(dry_run=dry_run)


def forget(task_id: str, *, principal: Principal) -> None:
    """Remove an ended task with all that it holds, as if its time were over.

    Raises: ValueError for one that has not ended; as `cancel`.
    """
    view = access.act_on(task_id, principal=principal)
    if not view.state.ended:
        raise ValueError(f"{task_id} is {view.state}")
    purging.forget(view)


def live_workers() -> int:
    """How many workers gave a sign of life lately. Raises: StateUnavailable."""
    return len(store().workers())


def queue_lengths() -> dict[str, int]:
    """Tasks that wait or are worked on, by the kind of their next step. Raises: StateUnavailable."""
    return store().queue_lengths()


def diagnose() -> list[Finding]:
    """What `export_doctor` shows: whether everything that the service needs is there and fit. Raises nothing."""
    return diagnosis.diagnose()
