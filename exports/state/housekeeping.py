"""What the sweep and the workers keep beside the tasks: leases to look at, cleaning up, who is alive."""

from collections.abc import Mapping, Sequence
from typing import cast

import redis

from exports.contracts import State, Step
from exports.state import keys, replies
from exports.state.connection import Connection, connect_to_ask, translated
from exports.state.keys import NO_TASK, TaskRef
from exports.state.replies import RESTARTS, Lease, WorkerSign

_SPOOL_MS = 120_000
"""Life of what was measured of the spool: it is measured every minute, by one worker."""


class Housekeeping(Connection):
    """Raises, all methods: StateUnavailable."""

    def leases(self, task_ids: Sequence[str]) -> dict[str, list[Lease]]:
        """The leases of some tasks."""
        with translated(), self._redis.pipeline(transaction=False) as pipe:
            for task_id in task_ids:
                pipe.hgetall(keys.of_task("running", task_id))
            found = pipe.execute()
        return {
            task_id: [replies.lease(step, text) for step, text in held.items()]
            for task_id, held in zip(task_ids, found, strict=True)
        }

    def remember_lapsed(self, beats: Mapping[str, int], *, life_ms: int) -> dict[str, int]:
        """Note workers whose lease lapsed, by when they last renewed it (ms); all that were noted lately."""
        with translated(), self._redis.pipeline() as pipe:
            if beats:
                pipe.zadd(keys.LOST, dict(beats))
            pipe.zremrangebyscore(keys.LOST, "-inf", self.now_ms() - life_ms)
            pipe.pexpire(keys.LOST, life_ms)
            pipe.zrange(keys.LOST, 0, -1, withscores=True)
            found = cast(list[tuple[str, float]], pipe.execute()[-1])
        return {worker: int(beat) for worker, beat in found}

    def scan_running(self) -> list[str]:
        """Ids of all tasks that have leases, by a scan of the key space."""
        with translated():
            return [key.rsplit(":", 1)[1] for key in self._redis.scan_iter(match=keys.RUNNING_PATTERN, count=1000)]

    def due_steps(self, step: Step, task_ids: Sequence[str], now_ms: int) -> int:
        """How many steps of these tasks could be claimed now, at most the task limit for each."""
        with translated(), self._redis.pipeline(transaction=False) as pipe:
            for task_id in task_ids:
                pipe.zcount(keys.of_task("pending", task_id), "-inf", now_ms)
                pipe.hlen(keys.of_task("running", task_id))
            counts = pipe.execute()
        limit = self._conf.leases_per_task if step is Step.SHARD else 1
        return sum(max(0, min(due, limit - held)) for due, held in zip(counts[::2], counts[1::2], strict=True))

    def take_sweep_lock(self, holder: str, life_ms: int) -> bool:
        with translated():
            return bool(self._redis.set(keys.SWEEP_LOCK, holder, nx=True, px=life_ms))

    def due_cleanups(self, now_ms: int, limit: int = 100) -> list[tuple[str, str]]:
        """(task id, owner digest) of ended tasks that need cleaning up."""
        with translated():
            members = cast(list[str], self._redis.zrangebyscore(keys.CLEANUP, "-inf", now_ms, start=0, num=limit))
        return [cast(tuple[str, str], tuple(member.split("|", 1))) for member in members]

    def settle_cleanup(self, task_id: str, owner: str, *, due_ms: int | None) -> None:
        """Plan the next cleaning up, or none. owner: its digest."""
        with translated():
            member = f"{task_id}|{owner}"
            if due_ms is None:
                self._redis.zrem(keys.CLEANUP, member)
            else:
                self._redis.zadd(keys.CLEANUP, {member: due_ms}, xx=True)

    def untold(self, until_ms: int) -> list[str]:
        """Ids of tasks that ended until then and whose end nobody has told."""
        with translated():
            return cast(list[str], self._redis.zrangebyscore(keys.NOTIFY, "-inf", until_ms))

    def forget(self, task_id: str, owner: str) -> None:
        """Take an expired task out of the indexes and the cleaning up. owner: its digest."""
        with translated(), self._redis.pipeline() as pipe:
            for state in State:
                pipe.zrem(keys.index(state), task_id)
            pipe.zrem(keys.owner_index(owner), task_id)
            pipe.zrem(keys.owner_changed(owner), task_id)
            pipe.zrem(keys.NOTIFY, task_id)
            pipe.zrem(keys.CLEANUP, f"{task_id}|{owner}")
            pipe.execute()

    def erase(self, ref: TaskRef) -> None:
        """Delete every key of an ended task, and forget it."""
        with translated():
            self._redis.delete(*keys.own(ref))
        self.forget(ref.id, keys.owner_digest(ref.owner))

    def identity(self, proposed: str) -> str:
        """The identity of this database; the proposed one when it has none yet."""
        with translated():
            self._redis.set(keys.IDENTITY, proposed, nx=True)
            return cast(str, self._redis.get(keys.IDENTITY))

    def known_identity(self) -> str | None:
        with translated():
            return cast(str | None, self._redis.get(keys.IDENTITY))

    # --- the spool -------------------------------------------------------------------------

    def spool_is_due(self) -> bool:
        """Whether its size was measured so long ago that it should be again."""
        with translated():
            return self._redis.pttl(keys.SPOOL) < _SPOOL_MS // 2

    def keep_spool_size(self, used: int, free: int) -> None:
        """Bytes, for those who watch."""
        with translated():
            self._redis.set(keys.SPOOL, f"{used}|{free}", px=_SPOOL_MS)

    # --- workers ---------------------------------------------------------------------------

    def beat(self, worker: str, sign: WorkerSign) -> None:
        """Tell that a worker is alive, and what it does."""
        with translated():
            self._redis.hset(keys.WORKERS, worker, replies.worker_text(sign, self.now_ms()))

    def forget_worker(self, worker: str, *, reason: str = "") -> None:
        """A worker has ended. reason: of `RESTARTS`, where another one takes its place."""
        self._run("forget_worker", NO_TASK, worker=worker, reason=reason if reason in RESTARTS else "")

    def workers(self) -> dict[str, WorkerSign]:
        """Those that gave a sign of life lately; forgets the others."""
        now = self.now_ms()
        with translated():
            found = cast(dict[str, str], self._redis.hgetall(keys.WORKERS))
        alive = replies.alive_workers(found, now)
        for worker in found.keys() - alive.keys():
            self.forget_worker(worker, reason="died")
        return alive

    # --- the server itself -----------------------------------------------------------------

    def ping(self) -> None:
        """On a connection of its own: one that is open may wait longer for an answer than whoever probes."""
        with translated(), connect_to_ask(self._conf.redis_url) as client:
            client.ping()

    def is_at(self, url: str) -> bool:
        """Whether another address leads to this database too, whatever the name of its host."""
        with translated(), connect_to_ask(url) as client:
            return self._place(client) == self._place(self._redis)

    def _place(self, client: "redis.Redis") -> tuple[str, int]:
        info = client.info("server")
        return str(info["run_id"]), int(client.connection_pool.connection_kwargs.get("db", 0))

    def server_problems(self) -> list[str]:
        """What makes this Redis unfit to hold the only copy of the state; empty when it is fit."""
        with translated():
            memory = self._redis.info("memory")
            persistence = self._redis.info("persistence")
            cluster = self._redis.info("cluster")
        problems = []
        if memory["maxmemory_policy"] != "noeviction":
            problems.append(f"maxmemory-policy is {memory['maxmemory_policy']}, it must be noeviction")
        if not int(persistence["aof_enabled"]):
            problems.append("appendonly is off, it must be on")
        if int(cluster.get("cluster_enabled", 0)):
            problems.append("cluster mode is on, it is not supported")
        return problems
