"""Every word of the ops page, in Chinese and English. Errors of tasks are in `exports.messages`."""

from collections.abc import Mapping

from exports.contracts import Phase, QueueName, State, Step
from exports.messages import PHASES, PLANNING, Language, Text

WORDS: Mapping[str, Text] = {
    "site": Text("订单导出 · 运维", "Order exports · Operations"),
    "language": Text("English", "中文"),
    "sections": Text("栏目", "Sections"),
    # overview
    "overview": Text("概览", "Overview"),
    "stalled": Text("停滞", "stalled"),
    "rows_per_second": Text("行/秒", "rows/s"),
    "queues": Text("队列", "Queues"),
    "queue": Text("队列", "Queue"),
    "tasks_waiting": Text("任务", "Tasks"),
    "hints_waiting": Text("未取消息", "Hints waiting"),
    "unknown": Text("未知", "unknown"),
    "oldest_queued": Text("最早排队任务已等待", "Oldest queued task has waited"),
    "workers": Text("工作进程", "Workers"),
    "worker": Text("进程", "Worker"),
    "group": Text("组", "Group"),
    "doing": Text("正在处理", "Does"),
    "idle": Text("空闲", "idle"),
    "busy": Text("忙", "busy"),
    "no_workers": Text(
        "最近 15 秒没有工作进程的心跳，任务将一直排队。",
        "No worker gave a sign of life in the last 15 seconds: tasks stay queued.",
    ),
    "lately": Text("最近几小时", "The last hours"),
    "chart": Text("每分钟导出的行数", "Rows exported each minute"),
    "chart_most": Text("最高 {rows} 行/分", "at most {rows} rows a minute"),
    "chart_ended": Text(
        "其间：成功 {succeeded}，失败 {failed}，取消 {cancelled}",
        "meanwhile: {succeeded} succeeded, {failed} failed, {cancelled} cancelled",
    ),
    "running_now": Text("正在运行", "Running"),
    "failed_last": Text("最近失败", "Failed last"),
    "all_of_these": Text("全部", "All of these"),
    # list
    "tasks": Text("任务", "Tasks"),
    "filter": Text("筛选", "Filter"),
    "apply": Text("筛选", "Filter"),
    "reset": Text("清除", "Clear"),
    "any": Text("不限", "any"),
    "state": Text("状态", "State"),
    "owner": Text("所有者", "Owner"),
    "format": Text("格式", "Format"),
    "age": Text("进入该状态", "In its state"),
    "code": Text("错误码", "Error code"),
    "search": Text("taskId、requestId 或 traceId", "taskId, requestId or traceId"),
    "within_1h": Text("1 小时内", "for at most 1 hour"),
    "within_1d": Text("1 天内", "for at most 1 day"),
    "within_3d": Text("3 天内", "for at most 3 days"),
    "before_10m": Text("超过 10 分钟", "for more than 10 minutes"),
    "before_1h": Text("超过 1 小时", "for more than 1 hour"),
    "before_1d": Text("超过 1 天", "for more than 1 day"),
    "none_found": Text("没有符合条件的任务。", "No task matches."),
    "next_page": Text("下一页", "Next page"),
    "first_page": Text("回到第一页", "First page"),
    "since": Text("自", "Since"),
    "window": Text("日期范围", "Window"),
    "progress": Text("进度", "Progress"),
    "rows_of": Text("{done} / {total} 行", "{done} of {total} rows"),
    "rows_so_far": Text("{done} 行", "{done} rows"),
    "act_on_all": Text("对所有符合条件的任务", "All tasks that match"),
    # one task
    "task": Text("任务", "Task"),
    "created": Text("提交于", "Submitted"),
    "started": Text("开始于", "Started"),
    "finished": Text("结束于", "Ended"),
    "kept_until": Text("保留至", "Kept until"),
    "as_of": Text("数据截至", "Data as of"),
    "run": Text("第几次运行", "Run"),
    "request_id": Text("requestId", "requestId"),
    "trace_id": Text("traceId", "traceId"),
    "log_query": Text("查询日志", "Find its log lines"),
    "file": Text("文件", "File"),
    "download": Text("下载", "Download"),
    "size": Text("大小", "Size"),
    "manifest": Text("清单", "Manifest"),
    "download_manifest": Text("下载清单", "Download the manifest"),
    "planned": Text("计划行数", "Planned"),
    "bytes": Text("字节", "Bytes"),
    "sha256": Text("SHA-256", "SHA-256"),
    "drift": Text("行数漂移", "Drift"),
    "warnings": Text("警告", "Warnings"),
    "cancel_on_its_way": Text(
        "已请求取消，正在写完当前页。", "A cancel was accepted; the pages in progress are finished first."
    ),
    "what_failed": Text("失败原因", "What failed"),
    "phase": Text("阶段", "Phase"),
    "shard": Text("分片", "Shard"),
    "page": Text("页", "Page"),
    "key_range": Text("主键范围", "Keys"),
    "after_key": Text("{cursor} 之后的至多 {rows} 行", "at most {rows} rows after {cursor}"),
    "from_first_key": Text("自首行起至多 {rows} 行", "at most {rows} rows from the first one"),
    "attempts": Text("尝试", "Attempts"),
    "what_to_do": Text("处理办法", "What to do"),
    "runbook": Text("运维手册", "Runbook"),
    "phases": Text("各阶段", "Phases"),
    "done": Text("完成", "done"),
    "pending": Text("等待", "pending"),
    "not_yet": Text("未开始", "not yet"),
    "stopped_here": Text("停在这里", "stopped here"),
    "shards": Text("分片", "Shards"),
    "shards_done": Text("{done} / {total} 完成", "{done} of {total} done"),
    "cursor": Text("已写到", "Cursor"),
    "rows": Text("行", "Rows"),
    "page_size": Text("页大小", "Page size"),
    "recoveries": Text("丢失进程", "Workers lost"),
    "next_try": Text("下次尝试", "Next try"),
    "holder": Text("持有者", "Held by"),
    "history": Text("历史", "History"),
    "time": Text("时间", "Time"),
    "event": Text("事件", "Event"),
    "detail": Text("详情", "Detail"),
    "audit": Text("审计", "Audit"),
    "action": Text("操作", "Action"),
    "who": Text("操作者", "Who"),
    "address": Text("地址", "Address"),
    "result": Text("结果", "Result"),
    "callbacks": Text("回调", "Callbacks"),
    "callback": Text("回调", "Callback"),
    "replays": Text("重发", "Replays"),
    "last_answer": Text("最近一次结果", "Last answer"),
    "waiting": Text("等待", "waiting"),
    "delivered": Text("已送达", "delivered"),
    "failed": Text("失败", "failed"),
    "no_shards": Text("尚未计划。", "Not planned yet."),
    # actions
    "actions": Text("操作", "Actions"),
    "rerun": Text("重跑缺失部分", "Rerun what is missing"),
    "rerun-from-scratch": Text("从头重跑", "Rerun from scratch"),
    "cancel": Text("取消", "Cancel"),
    "delete": Text("删除文件", "Delete the file"),
    "replay": Text("重发回调", "Replay callbacks"),
    "preview": Text("将会发生什么", "What will happen"),
    "tasks_count": Text("任务：{count}", "Tasks: {count}"),
    "capped": Text(
        "符合条件的超过 {most} 个，这次只处理前 {most} 个。",
        "More than {most} match; this time it is the first {most}.",
    ),
    "would_read": Text(
        "读取 {rows} 行（{shards} 个分片）；保留 {kept} 行",
        "rows to read: {rows}, in shards: {shards}; rows kept: {kept}",
    ),
    "would_finish": Text("所有行已写好，只需生成并存储文件", "all rows are written; only the file is made and stored"),
    "would_plan": Text("重新计划，从第一行开始读取", "is planned anew and read from the first row"),
    "would_cancel": Text(
        "取消并释放已写的行，之后不能重跑", "is cancelled and its rows are freed; it cannot run again"
    ),
    "would_delete": Text(
        "文件、清单和已写的行立即删除，无法恢复",
        "its file, manifest and rows are deleted now and cannot be brought back",
    ),
    "would_replay": Text("重新发送：{callbacks}", "is sent anew: {callbacks}"),
    "stays": Text("不变：{why}", "stays as it is: {why}"),
    "reason": Text("原因", "Reason"),
    "reason_help": Text("随任务保存，并写入审计日志", "Kept with the task and in the audit log"),
    "do_it": Text("确认执行", "Do it"),
    "back": Text("返回", "Back"),
    "nothing_to_do": Text("没有可以执行的任务。", "There is nothing to do."),
    "did": Text("{action}：{count} 个任务", "{action}, tasks: {count}"),
    "refused_one": Text("任务 {task} 不变：{why}", "Task {task} stays as it is: {why}"),
    "file_left": Text(
        "任务 {task} 已删除；文件将在存储恢复后移除",
        "Task {task} is deleted; its file goes when the file store is back",
    ),
    # around
    "pause": Text("暂停更新", "Pause updates"),
    "resume": Text("继续更新", "Resume updates"),
    "updated": Text("更新于 {time}（{zone}）", "Updated {time} ({zone})"),
    "missing": Text("找不到", "Not found"),
    "no_such_task": Text("没有这个任务，或已过保留期。", "There is no such task, or it is kept no longer."),
    "stale_form": Text(
        "表单已失效：请返回，重新载入页面后再试。",
        "The form is out of date: go back, load the page again, and try again.",
    ),
    "away": Text("暂时不可用", "Not available"),
    "redis_away": Text(
        "Redis 没有响应。任务会在其恢复后自行继续。",
        "Redis does not answer. Tasks go on by themselves when it is back.",
    ),
    "no_runbook": Text("此安装不含 docs/operations.md。", "This installation comes without docs/operations.md."),
}

STATES: Mapping[State, Text] = {
    State.QUEUED: Text("排队", "queued"),
    State.RUNNING: Text("运行中", "running"),
    State.SUCCEEDED: Text("成功", "succeeded"),
    State.FAILED: Text("失败", "failed"),
    State.CANCELLED: Text("已取消", "cancelled"),
}
STEPS: Mapping[Step, Text] = {
    Step.PLAN: PLANNING,
    Step.SHARD: PHASES[Phase.FETCH],
    Step.RENDER: PHASES[Phase.RENDER],
    Step.UPLOAD: PHASES[Phase.UPLOAD],
}
QUEUES: Mapping[str, Text] = {
    "plan": PLANNING,
    QueueName.FAST: Text("快", "fast"),
    QueueName.NORMAL: Text("普通", "normal"),
    QueueName.SLOW: Text("慢", "slow"),
    "finish": Text("合成与上传", "finish"),
}
EVENTS: Mapping[str, Text] = {
    **{state.value: text for state, text in STATES.items()},
    "planned": Text("已计划", "planned"),
    "fetched": Text("已读完", "fetched"),
    "rendered": Text("已合成", "rendered"),
    "retry": Text("将重试", "retry"),
    "recovered": Text("已接管", "recovered"),
    "reopened": Text("重新读取", "reopened"),
    "rerun": Text("重跑", "rerun"),
    "cancel": Text("请求取消", "cancel"),
    "stalled": Text("停滞", "stalled"),
    "replayed": Text("重发回调", "callback replayed"),
    "moved": Text("换到较慢队列", "moved to a slower queue"),
}
"""Names in a task's history; others are shown as they are."""

REMEDIES: Mapping[str, Text] = {
    "database_timeout": Text(
        "查看订单库的锁和负载；恢复后重跑缺失部分。",
        "Look at locks and load of the orders database, then rerun what is missing.",
    ),
    "database_connection": Text(
        "确认订单库在线、地址和密码正确、连接数未满，然后重跑缺失部分。",
        "See that the orders database is up and takes connections, then rerun what is missing.",
    ),
    "replica_conflict": Text(
        "调整副本的 max_standby_streaming_delay 或换一个副本，然后重跑缺失部分。",
        "Raise the replica's max_standby_streaming_delay or take another one, then rerun what is missing.",
    ),
    "page_too_large": Text(
        "最小的一页仍放不进内存：查看主键范围内的超长文本，增加进程内存后重跑缺失部分。",
        "Even the smallest page does not fit: look at huge texts in the keys above, give workers more memory, rerun what is missing.",
    ),
    "disk_full": Text(
        "为暂存目录腾出空间，或取消无人需要的失败任务，然后重跑缺失部分。",
        "Make room in the spool, or cancel failed tasks that nobody wants, then rerun what is missing.",
    ),
    "spool_lost": Text(
        "检查磁盘或存储桶、暂存区是否被清理、其主机上的进程是否在运行；恢复后重跑缺失部分，无法恢复则从头重跑。",
        "Check the disk or bucket, that nobody cleans the spool, and that workers run on its host; then rerun what is missing, or from scratch if it is gone.",
    ),
    "store_unavailable": Text(
        "检查文件存储的空间和权限，然后重跑缺失部分：只会再次上传。",
        "Check room and rights of the file store, then rerun what is missing: it only uploads.",
    ),
    "row_limit": Text(
        "请用户缩短日期范围，或提高 max_rows 后重跑。", "Ask for a shorter window, or raise max_rows and rerun."
    ),
    "max_runtime": Text(
        "查看读取每页为何缓慢；重跑缺失部分会重新计时。",
        "See why pages take so long; a rerun of what is missing goes on with a new account of time.",
    ),
    "specification_changed": Text(
        "列或文件设置已更改：从头重跑。", "Columns or file settings have changed: rerun from scratch."
    ),
    "poison": Text(
        "查看内核日志和容器内存上限，以及主键范围内的行；排除后重跑缺失部分。",
        "Look at the kernel's log and memory limits, and at the rows in the keys above, then rerun what is missing.",
    ),
    "unclassified": Text(
        "用下面的查询找到 step.failed 日志，其中有异常的类名和位置。",
        "Find the log event step.failed with the query below: it names the exception and its place.",
    ),
}
"""What to do about each error code, in one sentence; the runbook says more."""


def in_language(language: Language) -> dict[str, str]:
    """The words for a template; those with facts keep their braces."""
    return {name: (text.zh if language is Language.ZH else text.en) for name, text in WORDS.items()}
