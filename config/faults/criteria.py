"""The acceptance list. Each criterion is a function that returns what was seen, or raises `Broken`."""

import datetime as dt
import signal
import threading
import time
from collections.abc import Callable

from config.faults.trial import Broken, Trial
from exports import service
from exports.contracts import Drift, Phase, State
from exports.messages import Language, Text, failure_sentence

CANCEL_LIMIT_S = 10.0
_SUBMITS = 10
_NO_ROOM = {"EXPORTS_SPOOL_RESERVE_MB": "1000000000"}
"""A spool whose reserve is larger than any disk: a fault of a page that needs no damage."""

Seen = Text
Criterion = Callable[[Trial], Seen]


def undisturbed(trial: Trial) -> Seen:
    view = trial.whole(trial.submit())
    if view.drift is None or view.drift.drift is Drift.CHANGED or view.processed != view.total:
        raise Broken(f"{view.processed} of {view.total} rows, drift {view.drift and view.drift.drift}")
    if view.processed != trial.window.rows:
        raise Broken(f"{view.processed} rows, {trial.window.rows} were counted")
    trial.sha256 = view.sha256
    return Text(
        f"{view.processed:,} 行，{view.shards_total} 个分片，{_took(view.started_at, view.finished_at):.1f} 秒，sha256 {view.sha256[:12]}",
        f"{view.processed:,} rows, {view.shards_total} shards, {_took(view.started_at, view.finished_at):.1f} s, sha256 {view.sha256[:12]}",
    )


def ten_submits(trial: Trial) -> Seen:
    request = trial.request("ten at once")
    answers: list[service.Submitted] = []
    barrier = threading.Barrier(_SUBMITS)

    def post() -> None:
        barrier.wait()
        answers.append(service.submit(request, traceparent=None))

    threads = [threading.Thread(target=post) for _ in range(_SUBMITS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tasks = {answer.task_id for answer in answers}
    created = sum(answer.created for answer in answers)
    if len(answers) != _SUBMITS or len(tasks) != 1 or created != 1:
        raise Broken(f"{len(answers)} answers, {len(tasks)} tasks, {created} created")
    trial.whole(tasks.pop())
    return Text(f"{_SUBMITS} 次应答，1 个任务，1 个文件", f"{_SUBMITS} answers, 1 task, 1 file")


def kill_in_fetch(trial: Trial) -> Seen:
    return _kill_in(trial, Phase.FETCH)


def kill_in_render(trial: Trial) -> Seen:
    return _kill_in(trial, Phase.RENDER)


def kill_in_upload(trial: Trial) -> Seen:
    return _kill_in(trial, Phase.UPLOAD)


def _kill_in(trial: Trial, phase: Phase) -> Seen:
    stopped = trial.stop_in(phase)
    trial.workers.kill()
    began = time.monotonic()
    trial.workers.start()
    view = trial.whole(stopped.task_id)
    seconds = time.monotonic() - began
    return Text(
        f"在 {stopped.processed:,}/{view.processed:,} 行时终止全部进程，{seconds:.1f} 秒后完成，字节相同",
        f"all workers killed at {stopped.processed:,} of {view.processed:,} rows, done {seconds:.1f} s later, same bytes",
    )


def stopped_worker(trial: Trial) -> Seen:
    stopped = trial.stop_in(Phase.FETCH)
    trial.workers.send(signal.SIGCONT, group="fast")
    trial.workers.start("lanes")
    view = trial.whole(stopped.task_id)
    trial.workers.send(signal.SIGCONT)
    time.sleep(1)
    if trial.read(stopped.task_id).state is not State.SUCCEEDED or trial.read_digest(stopped.task_id) != view.sha256:
        raise Broken(f"{stopped.task_id}: the woken worker changed what was finished")
    return Text(
        f"在 {stopped.processed:,} 行时冻结，由其他进程完成；唤醒后文件不变",
        f"stopped at {stopped.processed:,} rows, done by another worker; awake again it changed nothing",
    )


def cancelled(trial: Trial) -> Seen:
    stopped = trial.stop_in(Phase.FETCH)
    began = time.monotonic()
    service.cancel(stopped.task_id, principal=trial.principal)
    cancelled_at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    trial.workers.send(signal.SIGCONT)
    view = trial.wait_for(stopped.task_id, lambda found: found.state is State.CANCELLED, limit_s=CANCEL_LIMIT_S)
    seconds = time.monotonic() - began
    pages = (view.processed - stopped.processed) / trial.window.page_rows
    if pages > len(trial.workers):  # each had one in progress
        raise Broken(f"{stopped.task_id}: {pages:.0f} pages were read after the cancel, not only those in progress")
    late = [
        line["shardId"]
        for line in trial.workers.log_lines()
        if (line.get("event"), line.get("taskId")) == ("shard.started", stopped.task_id) and line["time"] > cancelled_at
    ]
    if late:
        raise Broken(f"{stopped.task_id}: shards {', '.join(late)} were claimed after the cancel")
    return Text(
        f"{seconds:.2f} 秒后结束，其后没有分片被领取", f"over after {seconds:.2f} s, no shard was claimed after it"
    )


def failed(trial: Trial) -> Seen:
    trial.workers.stop()
    trial.workers.start(**_NO_ROOM)
    view = trial.wait(trial.submit())
    failure = view.failure
    if failure is None or (failure.phase, failure.code) != (Phase.FETCH, "disk_full"):
        raise Broken(f"{view.task_id} {view.state}, {failure and failure.code}")
    if not failure.shard_id or failure.page < 1:
        raise Broken(f"{view.task_id}: the error names no shard or no page")
    trial.workers.stop()
    trial.workers.start()
    service.rerun(view.task_id, principal=trial.principal)
    trial.whole(view.task_id)
    zh, en = (failure_sentence(failure, language) for language in (Language.ZH, Language.EN))
    return Text(f"“{zh}”重跑后字节相同", f"{en!r}; the rerun has the same bytes")


def _took(started_at: dt.datetime | None, finished_at: dt.datetime | None) -> float:
    assert started_at is not None
    assert finished_at is not None
    return (finished_at - started_at).total_seconds()


CRITERIA: dict[str, tuple[Criterion, Text]] = {
    "undisturbed": (
        undisturbed,
        Text("不受干扰的导出包含计划的每一行", "an undisturbed export holds every planned row"),
    ),
    "ten_submits": (
        ten_submits,
        Text("同一 requestId 同时提交十次只有一个任务", "ten submits of one requestId at once are one task"),
    ),
    "kill_in_fetch": (kill_in_fetch, Text("读取中 kill -9 后自行继续", "kill -9 in fetch: it goes on by itself")),
    "kill_in_render": (kill_in_render, Text("合成中 kill -9 后自行继续", "kill -9 in render: it goes on by itself")),
    "kill_in_upload": (kill_in_upload, Text("上传中 kill -9 后自行继续", "kill -9 in upload: it goes on by itself")),
    "stopped_worker": (
        stopped_worker,
        Text("冻结的进程被接替，唤醒后无害", "a stopped worker is replaced and harmless when awake"),
    ),
    "cancelled": (
        cancelled,
        Text("取消在 10 秒内完成，不再领取分片", "a cancel takes at most 10 s and nothing is claimed after it"),
    ),
    "failed": (
        failed,
        Text("失败说明阶段、分片和页码，可重跑", "a failure names phase, shard and page, and can be run again"),
    ),
}
"""Name → what is tried and what it is called. The first one makes the file that all others are compared with."""
