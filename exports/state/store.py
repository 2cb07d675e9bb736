"""The state of all tasks in Redis: one method a transition, one script a method.

Every method that changes a task under a claim answers a short word from its script's header. `lost` means that
the claim does not hold the step any more: the caller stops and touches nothing.
Raises, all methods: StateUnavailable when Redis does not answer or refuses (out of memory, loading, read-only).
"""

import functools
import uuid
from collections.abc import Iterable, Sequence

from django.core.signals import setting_changed

from exports.conf import conf
from exports.contracts import (
    CommittedSegment,
    ExportRequest,
    OpenUpload,
    QueueName,
    Recount,
    Shard,
    Step,
    StoredPart,
    Warning,
)
from exports.state import replies
from exports.state.callbacks import Callbacks
from exports.state.connection import connect
from exports.state.housekeeping import Housekeeping
from exports.state.keys import TaskRef
from exports.state.reader import Counters, Durations, Reader
from exports.state.replies import Claim, Lease, LimitHit, NoClaim
from exports.state.watching import Watching

_PATIENCE = 5
"""Plan, render and upload have no page to blame: they may lose this many times as many workers."""
_AUDIT_KEPT = 200

__all__ = ["Counters", "Durations", "Store", "store"]


class Store(Reader, Watching, Housekeeping, Callbacks):
    """One Redis database."""

    # --- asking for work -------------------------------------------------------------------

    def submit(
        self, ref: TaskRef, request: ExportRequest, *, fingerprint: str, traceparent: str
    ) -> tuple[str, str] | LimitHit | None:
        """Make the task; None when it is new, else the (task id, fingerprint) that has this requestId, or a limit."""
        fields = {
            "kind": request.kind,
            "owner": request.owner,
            "request_id": request.request_id,
            "first_day": request.first_day.isoformat(),
            "last_day": request.last_day.isoformat(),
            "format": str(request.format),
            "masked": str(int(request.masked)),
            "traceparent": traceparent,
        }
        flat = [text for pair in fields.items() for text in pair]
        reply = self._run(
            "submit_task",
            ref,
            fingerprint=fingerprint,
            most_queued=self._conf.queued_per_owner,
            most_made=self._conf.submits_per_minute,
            fields=flat,
        )
        if reply[0] == "created":
            return None
        if reply[0] != "known":
            return replies.limit_hit(reply)
        task_id, _, known = reply[1].partition("|")
        # Our own id: the reply to the call that made the task was lost.
        return None if task_id == ref.id else (task_id, known)

    def claim(self, ref: TaskRef, step: Step, *, worker: str, digest: str, spool: str = "") -> Claim | NoClaim:
        """Claim one step of a class. digest: of the worker's own specification for this task. spool: its id."""
        claim_id = uuid.uuid4().hex
        reply = self._run(
            "claim_step",
            ref,
            **{"class": step},
            claim=claim_id,
            worker=worker,
            task_limit=self._conf.leases_per_task,
            budget=self._conf.database_leases,
            owner_limit=self._conf.running_per_owner,
            digest=digest,
            spool=spool,
            guard_leases=self._conf.guard_leases,
            guard_page_ms=self._conf.guard_page_ms,
        )
        if reply[0] == "ok":
            return replies.claim(ref, step, claim_id, reply)
        return NoClaim(reply[0], int(reply[1]) if reply[0] == "wait" else 0)

    # --- under a claim ---------------------------------------------------------------------

    def renew(self, claim: Claim, *, begun: bool = False, moved: bool = False) -> str:
        """begun: a page is about to be read. moved: there was progress since the last call."""
        return self._held("renew_lease", claim, begun=int(begun), moved=int(moved))[0]

    def keep_plan(self, claim: Claim, field: str, value: str) -> str:
        return self._run("keep_plan", claim.ref, claim=claim.claim_id, field=field, value=value)[0]

    def write_plan(
        self,
        claim: Claim,
        shards: Iterable[Shard],
        *,
        digest: str,
        as_of: str,
        file_name: str,
        queue: QueueName = QueueName.NORMAL,
        spool: str = "",
    ) -> str:
        """spool: id of the one where the segments will lie."""
        flat = [text for shard in shards for text in (shard.id, str(shard.planned))]
        return self._run(
            "write_plan",
            claim.ref,
            claim=claim.claim_id,
            page_rows=self._conf.page_rows,
            digest=digest,
            as_of=as_of,
            file_name=file_name,
            queue=queue,
            spool=spool,
            shards=flat,
        )[0]

    def commit(
        self,
        claim: Claim,
        *,
        old_cursor: str,
        cursor: str,
        rows: int,
        segment: CommittedSegment,
        took_ms: int,
        read_ms: float = 0,
    ) -> str:
        """took_ms: to read, encode and append the page. read_ms: what a full page took to read; 0 for a page that
        tells nothing of the database.
        """
        return self._held(
            "commit_page",
            claim,
            old_cursor=old_cursor,
            cursor=cursor,
            rows=rows,
            segment=segment.name,
            length=segment.length,
            crc=segment.crc,
            pages=segment.pages,
            seg_rows=segment.rows,
            took_ms=took_ms,
            read_ms=f"{read_ms:.3f}",
        )[0]

    def finish_shard(self, claim: Claim, recount: Recount) -> str:
        return self._held("finish_shard", claim, drift=replies.drift_text(recount))[0]

    def write_recipe(
        self, claim: Claim, *, size: int, sha256: str, object_key: str, warnings: Sequence[Warning]
    ) -> str:
        return self._run(
            "write_recipe",
            claim.ref,
            claim=claim.claim_id,
            size=size,
            sha256=sha256,
            object_key=object_key,
            warnings=replies.warnings_text(warnings),
        )[0]

    def begin_upload(self, claim: Claim, upload: OpenUpload) -> str:
        return self._run("begin_upload", claim.ref, claim=claim.claim_id, upload=replies.upload_text(upload))[0]

    def record_part(self, claim: Claim, upload: OpenUpload, *, number: int, part: StoredPart) -> str:
        return self._run(
            "record_part",
            claim.ref,
            claim=claim.claim_id,
            upload=replies.upload_text(upload),
            number=number,
            part=f"{part.etag}|{part.md5}",
        )[0]

    def publish(self, claim: Claim) -> str:
        return self._run("publish_task", claim.ref, claim=claim.claim_id)[0]

    def retry(self, claim: Claim, code: str, *, part: int = 0) -> str:
        """part: the one of an upload that failed, from 1."""
        return self._held("retry_step", claim, code=code, part=part, delays=self._conf.retry_delays_ms)[0]

    def halve_page(self, claim: Claim, *, page_rows: int) -> tuple[str, int]:
        """The word, and the rows of a page from now on if it is `ok`. page_rows: the size that was too large."""
        reply = self._held("halve_page", claim, page_rows=page_rows, smallest=self._conf.page_rows_min)
        return reply[0], int(reply[1]) if reply[0] == "ok" else 0

    def fail(self, claim: Claim, code: str, *, retryable: bool) -> str:
        return self._held("fail_task", claim, code=code, retryable=int(retryable))[0]

    def release(self, claim: Claim) -> str:
        return self._held("release_step", claim)[0]

    def reopen(self, claim: Claim, shard_ids: Sequence[str]) -> str:
        return self._held("reopen_shard", claim, limit=3, shards=shard_ids)[0]

    # --- from outside ----------------------------------------------------------------------

    def cancel(self, ref: TaskRef, *, by: str = "") -> str:
        """by: who asked, and why; for the task's history."""
        return self._run("cancel_task", ref, by=by)[0]

    def complete_cancel(self, ref: TaskRef) -> str:
        return self._run("complete_cancel", ref, grace_ms=self._conf.cancel_grace_ms)[0]

    def fail_foreign(self, ref: TaskRef) -> str:
        """Fail a task that every worker has found foreign for the life of a lease."""
        return self._run("fail_foreign", ref, grace_ms=self._conf.lease_ms)[0]

    def fail_stranded(self, ref: TaskRef, *, alive: bool) -> str:
        """Fail a task whose spool has had no worker for too long. alive: it has one now."""
        return self._run("fail_stranded", ref, alive=int(alive), grace_ms=self._conf.spool_wait_s * 1000)[0]

    def fail_overdue(self, ref: TaskRef) -> str:
        """Fail a task that has run longer than any may."""
        return self._run("fail_overdue", ref, most_ms=self._conf.max_runtime_s * 1000)[0]

    def mark_stalled(self, ref: TaskRef) -> str:
        """Note that a running task makes no progress."""
        return self._run("mark_stalled", ref, after_ms=self._conf.stalled_after_s * 1000)[0]

    def move(self, ref: TaskRef) -> str:
        """Move a task that was worked on for too long on to the next slower queue."""
        settings = self._conf
        return self._run("move_task", ref, fast_ms=settings.fast_s * 1000, normal_ms=settings.normal_s * 1000)[0]

    def recover(self, ref: TaskRef, lease: Lease, *, proven: bool, counted: bool) -> str:
        return self._run(
            "recover_step",
            ref,
            step=lease.step,
            claim=lease.claim,
            proven=int(proven),
            counted=int(counted),
            limit=self._conf.recoveries_max * (1 if lease.is_shard else _PATIENCE),
            smallest=self._conf.page_rows_min,
        )[0]

    def rerun(
        self,
        ref: TaskRef,
        *,
        digest: str,
        from_scratch: bool,
        again: Sequence[str] = (),
        page_rows: int = 0,
        by: str = "",
    ) -> str:
        """again: shards whose rows are forgotten. page_rows: of the pages to come; 0: as they were. by: as in `cancel`."""
        return self._run(
            "rerun_task",
            ref,
            digest=digest,
            scratch=int(from_scratch),
            call=uuid.uuid4().hex,
            by=by,
            page_rows=page_rows,
            shards=again,
        )[0]

    def delete(self, ref: TaskRef, *, by: str, reason: str) -> str:
        """Leave nothing of an ended task but who deleted it, when and why."""
        return self._run("delete_task", ref, by=by, reason=reason)[0]

    def append_audit(self, ref: TaskRef, *, action: str, result: str, address: str, by: str) -> str:
        return self._run("append_audit", ref, entry=f"{action}|{result}|{address}|{by}", keep=_AUDIT_KEPT)[0]

    def _held(self, name: str, claim: Claim, **values: object) -> list[str]:
        return self._run(name, claim.ref, step=claim.name, claim=claim.claim_id, **values)


@functools.cache
def store() -> Store:
    """The store of the settings in force."""
    return Store(connect(conf()), conf())


def _forget(*, setting: str, **_: object) -> None:
    if setting == "EXPORTS":
        store.cache_clear()


setting_changed.connect(_forget)
