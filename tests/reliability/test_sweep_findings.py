"""What the sweeps have found, one test a fault: each is quicker than the sweep that finds it again."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import dramatiq
import pytest
import redis

from exports.contracts import Page, State, Step
from exports.errors import SpoolFull
from exports.pipeline import endings, manifest, plan, render, steps, sweep
from exports.state.store import store
from exports.storage.base import NoRecord, Source
from exports.storage.filesystem import FolderStore
from exports.storage.recipe import Recipe
from exports.storage.spool import FolderSpool
from tests.conftest import exports_settings
from tests.reliability.conftest import ROWS
from tests.reliability.failpoints import Calls, Mode, file_calls
from tests.reliability.journeys import damage, fetch, one_page
from tests.reliability.world import World, must_view, submit, work, work_off

pytestmark = pytest.mark.usefixtures("world")
PAGE = Page(b"row\n", 1, 4, 0)


def told(world: World) -> list[str]:
    return [line["state"] for line in world.lines() if line["event"] == "task.ended"]


def test_an_end_that_a_kill_kept_out_of_the_log_is_told_by_the_sweep_once(world: World) -> None:
    world.reset()
    with mock.patch.object(endings, "settle"):
        submit(world)
        work(world, rounds=1)
    assert (must_view(world).state, told(world)) == (State.SUCCEEDED, [])
    world.here(work_off)
    sweep.sweep(boot=True)
    assert told(world) == ["succeeded"]


def test_a_file_that_a_killed_upload_left_half_written_goes_with_the_next_upload(tmp_path: Path) -> None:
    files = FolderStore(tmp_path)
    (tmp_path / "exp_1").mkdir()
    (tmp_path / "exp_1" / ".r1.csv.0123").write_bytes(b"ha")
    source = Source(size=4, sha256=hashlib.sha256(b"half").hexdigest(), read=lambda _offset, _length: iter([b"half"]))
    files.put("exp_1/r1.csv", source, record=NoRecord())
    assert [path.name for path in (tmp_path / "exp_1").iterdir()] == ["r1.csv"]


def test_the_object_of_an_earlier_run_goes_after_success(world: World) -> None:
    world.reset()
    submit(world)
    with mock.patch.object(FolderStore, "delete"):
        work(world)
    view = must_view(world)
    stale = world.folder / "files" / view.task_id / "r0-older.csv"
    stale.write_bytes(b"of an epoch that failed after its upload")
    world.state.zadd("export:cleanup", dict.fromkeys(world.state.zrange("export:cleanup", 0, -1), 1))
    sweep.sweep(boot=True)
    assert {path.name for path in stale.parent.iterdir()} == {
        Path(name).name for name in manifest.objects(view.object_key)
    }


def test_each_claim_of_a_plan_gets_on_however_short_its_slice(world: World) -> None:
    world.reset()
    submit(world)
    with exports_settings(slice_ms=0):
        for _ in range(4):  # three days, and the plan as a whole
            plan.plan.fn()
    assert must_view(world).total == ROWS


def test_a_shard_that_is_read_again_frees_its_damaged_segments(world: World) -> None:
    world.reset()
    fetch(world)
    damaged = store().segments(world.task_id)
    damage(world)
    shard_id = min(segment.shard_id for segment in damaged)
    steps.run_slice(Step.RENDER, render.render_task)
    left = {path.name for path in (world.folder / "spool" / "tasks" / world.task_id).iterdir()}
    old = {segment.name for segment in damaged if segment.shard_id == shard_id}
    assert old and not old & left
    assert {segment.name for segment in damaged} - old <= left


def test_a_broker_that_does_not_answer_keeps_the_sweep_from_nothing(world: World) -> None:
    world.reset()
    submit(world)
    broker = dramatiq.get_broker()
    with (
        mock.patch.object(type(broker), "waiting", side_effect=redis.TimeoutError),
        mock.patch.object(sweep, "clean_up") as clean_up,
    ):
        sweep.sweep(boot=True)
    assert clean_up.called


# --- the spool and the disk ---


@pytest.fixture
def spool(tmp_path: Path) -> FolderSpool:
    spool = FolderSpool(tmp_path / "own-spool")
    spool.create("exp_1")
    return spool


def open_handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_segment_whose_second_file_cannot_be_made_leaves_no_handle_open(spool: FolderSpool) -> None:
    (spool.folder("exp_1") / "a.pages").touch()
    before = open_handles()
    with pytest.raises(Exception, match="FileExistsError"):
        spool.open_segment("exp_1", "a", shard_id="a", fence=1, sync_pages=False)
    assert open_handles() == before


def test_a_disk_that_is_full_for_every_call_is_still_told_as_full(spool: FolderSpool) -> None:
    writer = spool.open_segment("exp_1", "a", shard_id="a", fence=1, sync_pages=False)
    with file_calls(Calls(at=1, mode=Mode.FULL, lasting=True)), pytest.raises(SpoolFull):
        writer.append(PAGE)
    writer.close()


def test_what_render_relies_on_is_forced_to_disk_with_its_names(spool: FolderSpool) -> None:
    folder = spool.folder("exp_1")
    synced: list[str] = []
    real = {name: getattr(os, name) for name in ("fsync", "fdatasync")}

    def noting(name: str) -> Callable[[int], None]:
        def sync(handle: int) -> None:
            synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
            real[name](handle)

        return sync

    with mock.patch.object(os, "fsync", noting("fsync")), mock.patch.object(os, "fdatasync", noting("fdatasync")):
        spool.create("exp_2")
        writer = spool.open_segment("exp_1", "a", shard_id="a", fence=1, sync_pages=False)
        writer.keep(writer.append(PAGE))
        writer.sync()
        writer.close()
        assert synced == ["tasks", "a", "a.pages", folder.name]
        synced.clear()
        spool.write_recipe("exp_1", Recipe((), 0, "", ""))
        assert [name.split(".")[1] if name.startswith(".") else name for name in synced] == ["recipe", folder.name]
    assert spool.read_recipe("exp_1", sha256="").size == 0


def test_segments_that_no_longer_count_are_dropped_also_when_some_are_gone(spool: FolderSpool) -> None:
    writer = spool.open_segment("exp_1", "a", shard_id="a", fence=1, sync_pages=False)
    writer.close()
    spool.drop("exp_1", ["gone", "a"])
    spool.drop("exp_unknown", ["a"])
    assert list(spool.folder("exp_1").iterdir()) == []


# --- who died of what ---

LEASE_MS, RENEW_MS = 120_000, 1000
FIRST, SECOND = "2026-09-02", "2026-09-03"


def hold(world: World, worker: str, shard_id: str, *, lapses_in_ms: int) -> None:
    """A worker that reads a page of the one task and renews its lease no more."""
    expiry = store().now_ms() + lapses_in_ms
    world.state.hset(f"export:running:{world.task_id}", shard_id, f"{expiry}|9|{worker}|1|{worker}")
    world.state.zrem(f"export:pending:{world.task_id}", shard_id)


def sweep_until_free(world: World, shard_id: str) -> int:
    """How often the shard's page is blamed once its lease was taken back."""
    deadline = time.monotonic() + 10
    while world.state.hexists(f"export:running:{world.task_id}", shard_id):
        assert time.monotonic() < deadline
        sweep.sweep(boot=True)
    return next(shard.recoveries for shard in store().shards(world.task_id) if shard.shard_id == shard_id)


@pytest.fixture
def planned(world: World) -> Iterator[World]:
    world.reset()
    one_page(world)
    with exports_settings(lease_ms=LEASE_MS, renew_every_ms=RENEW_MS):
        yield world


def test_leases_that_a_host_loses_at_once_blame_no_page_whichever_lapses_first(planned: World) -> None:
    hold(planned, "host:1", FIRST, lapses_in_ms=-1)
    hold(planned, "host:2", SECOND, lapses_in_ms=300)
    assert sweep_until_free(planned, FIRST) == 0
    assert sweep_until_free(planned, SECOND) == 0


@pytest.mark.parametrize(("other", "lapses_in_ms"), [("another:2", 300), ("host:2", LEASE_MS)])
def test_a_worker_that_is_lost_beside_others_that_live_blames_its_page(
    planned: World, other: str, lapses_in_ms: int
) -> None:
    hold(planned, "host:1", FIRST, lapses_in_ms=-1)
    hold(planned, other, SECOND, lapses_in_ms=lapses_in_ms)
    assert sweep_until_free(planned, FIRST) == 1


def test_a_page_that_loses_one_worker_after_the_other_is_blamed_each_time(planned: World) -> None:
    hold(planned, "host:1", FIRST, lapses_in_ms=-LEASE_MS)
    assert sweep_until_free(planned, FIRST) == 1
    hold(planned, "host:2", FIRST, lapses_in_ms=-1)
    assert sweep_until_free(planned, FIRST) == 2
