"""`export_purge` removes only what is past its time, and nothing while spool, store and Redis do not agree."""

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from django.core.management import call_command
from ulid import ULID

from exports import service
from exports.contracts import Principal, Right
from exports.errors import TaskUnknown
from exports.pipeline import identity
from exports.storage.spool import FolderSpool
from tests import pipeline
from tests.databases import OrdersDatabase, utc

DAY_S = 86_400
DAY = "2026-09-14"


def purge(*arguments: str, code: int = 0) -> Any:
    out = io.StringIO()
    if code:
        with pytest.raises(SystemExit) as left:
            call_command("export_purge", "--json", *arguments, stdout=out)
        assert left.value.code == code
    else:
        call_command("export_purge", "--json", *arguments, stdout=out)
    return json.loads(out.getvalue())


def leave(root: Path, *, days_old: float, changed_days_ago: float | None = None) -> str:
    """Files of a task that no Redis knows; its id."""
    made_at = time.time() - days_old * DAY_S
    task_id = f"exp_{ULID.from_timestamp(made_at)}"
    (root / task_id).mkdir(parents=True)
    (root / task_id / "r1.csv").write_bytes(b"bytes")
    changed = made_at if changed_days_ago is None else time.time() - changed_days_ago * DAY_S
    for path in (root / task_id / "r1.csv", root / task_id):
        os.utime(path, (changed, changed))
    return task_id


@pytest.fixture
def settled(desk: Path, sqlite_orders: OrdersDatabase) -> Path:
    """An installation with one finished task; `spool` and `files` belong to its Redis."""
    sqlite_orders.add(1, created_at=utc(f"{DAY} 04:00:00"))
    purge()
    return desk


def test_the_first_purge_of_a_new_installation_makes_the_three_known_to_each_other(
    desk: Path, redis_db: redis.Redis
) -> None:
    assert purge() == {"refusal": None, "dryRun": False, "expired": {"spool": [], "store": []},
                       "unknown": {"spool": [], "store": []}, "keptUnknown": {"spool": [], "store": []}}  # fmt: skip
    identity = redis_db.get("export:identity")
    assert isinstance(identity, bytes) and len(identity) == 32
    assert (desk / "spool" / "identity").read_bytes() == (desk / "files" / "identity").read_bytes() == identity + b"\n"


def test_unknown_files_older_than_the_retention_go(settled: Path) -> None:
    in_store = leave(settled / "files", days_old=8)
    in_spool = leave(settled / "spool" / "tasks", days_old=8)
    assert purge()["unknown"] == {"spool": [in_spool], "store": [in_store]}
    assert not (settled / "files" / in_store).exists()
    assert not (settled / "spool" / "tasks" / in_spool).exists()


@pytest.mark.parametrize(("days_old", "changed_days_ago"), [(6, 6), (30, 6)], ids=["young task", "young file"])
def test_unknown_files_that_are_young_stay(settled: Path, days_old: float, changed_days_ago: float) -> None:
    task_id = leave(settled / "files", days_old=days_old, changed_days_ago=changed_days_ago)
    purged = purge()
    assert (purged["unknown"]["store"], purged["keptUnknown"]["store"]) == ([], [task_id])
    assert (settled / "files" / task_id / "r1.csv").read_bytes() == b"bytes"


def test_a_dry_run_removes_nothing(settled: Path) -> None:
    task_id = leave(settled / "files", days_old=8)
    assert purge("--dry-run")["unknown"]["store"] == [task_id]
    assert (settled / "files" / task_id / "r1.csv").exists()


def test_files_that_are_no_task_of_this_product_stay(settled: Path) -> None:
    (settled / "files" / "lost+found").mkdir()
    (settled / "files" / "exp_not-an-id").mkdir()
    os.utime(settled / "files" / "exp_not-an-id", (0, 0))
    assert purge()["unknown"]["store"] == []
    assert sorted(path.name for path in (settled / "files").iterdir()) == ["exp_not-an-id", "identity", "lost+found"]


def test_a_known_task_stays_however_old_its_files_are(settled: Path) -> None:
    task_id = pipeline.submit(DAY, DAY)
    assert pipeline.work(task_id).state == "succeeded"
    for path in (settled / "files" / task_id).iterdir():
        os.utime(path, (0, 0))
    assert purge()["unknown"]["store"] == []
    assert pipeline.read_file(task_id)


def test_an_empty_redis_purges_nothing(settled: Path, redis_db: redis.Redis) -> None:
    task_id = leave(settled / "files", days_old=30)
    redis_db.flushdb()
    assert "this Redis is empty or another one" in purge(code=1)["refusal"]
    assert (settled / "files" / task_id / "r1.csv").exists()
    assert redis_db.get("export:identity") is None


def test_a_foreign_redis_purges_nothing(settled: Path, redis_db: redis.Redis) -> None:
    task_id = leave(settled / "spool" / "tasks", days_old=30)
    redis_db.set("export:identity", "0" * 32)
    assert purge(code=1)["refusal"] == "the spool belongs to another Redis"
    assert (settled / "spool" / "tasks" / task_id / "r1.csv").exists()


def test_a_store_with_unknown_tasks_and_no_identity_is_not_taken_over(settled: Path) -> None:
    task_id = leave(settled / "files", days_old=30)
    (settled / "files" / "identity").unlink()
    assert "the store holds tasks that this Redis does not know" in purge(code=1)["refusal"]
    assert (settled / "files" / task_id / "r1.csv").exists()
    assert not (settled / "files" / "identity").exists()


def test_a_new_empty_store_joins_its_redis(settled: Path) -> None:
    (settled / "files" / "identity").unlink()
    assert purge()["refusal"] is None
    assert (settled / "files" / "identity").exists()


def test_a_finished_file_past_its_time_goes(settled: Path, redis_db: redis.Redis) -> None:
    task_id = pipeline.submit(DAY, DAY)
    assert pipeline.work(task_id).state == "succeeded"
    for name in redis_db.keys(f"export:*:{task_id}"):
        redis_db.delete(name)
    [member] = redis_db.zrange("export:cleanup", 0, -1)
    redis_db.zadd("export:cleanup", {member: 0})
    assert purge()["expired"] == {"spool": [], "store": [task_id]}
    assert not (settled / "files" / task_id).exists()


def test_a_forgotten_task_leaves_no_key_and_no_file(settled: Path, redis_db: redis.Redis) -> None:
    before = set(redis_db.keys("export:*"))
    task_id = pipeline.submit(DAY, DAY)
    with pytest.raises(ValueError, match="queued"):
        service.forget(task_id, principal=pipeline.ANN)
    pipeline.work(task_id)
    with pytest.raises(TaskUnknown):
        service.forget(task_id, principal=Principal("bob", frozenset({Right.SUBMIT, Right.VIEW})))
    service.forget(task_id, principal=pipeline.ANN)
    of_all = {f"export:{name}".encode() for name in ("metrics", "history", "workers", "spool", "shares")}
    assert set(redis_db.keys("export:*")) - before <= of_all
    assert list(settled.glob("*/exp_*")) == list((settled / "spool" / "tasks").iterdir()) == []


@pytest.mark.usefixtures("desk")
def test_two_processes_that_settle_at_the_same_moment_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    read, raced = FolderSpool.read_identity, []

    def read_after_another_has_settled(spool: FolderSpool) -> str:
        if not raced:
            raced.append(True)
            assert identity.settle() == ""
        return read(spool)

    monkeypatch.setattr(FolderSpool, "read_identity", read_after_another_has_settled)
    assert identity.settle() == ""
