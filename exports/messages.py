"""Every sentence that a caller reads, in Chinese and English.

A sentence is made from a code and its facts at the moment it is read, so that one stored failure answers
both languages. Nothing here holds a cell of any row but its key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation.trans_real import parse_accept_lang_header

from exports.contracts import Phase
from exports.views import Failure


class Language(StrEnum):
    ZH = "zh"
    EN = "en"


def choose_language(accept_language: str) -> Language:
    """The first language of the header that is spoken here; Chinese without one."""
    for name, quality in parse_accept_lang_header(accept_language.lower()):
        language = name.split("-")[0]
        if quality > 0 and language in set(Language):
            return Language(language)
    return Language.ZH


@dataclass(frozen=True, slots=True)
class Text:
    """One sentence in both languages; `{names}` are facts."""

    zh: str
    en: str

    def say(self, language: Language, **facts: object) -> str:
        return self.as_it_is(language).format_map(facts)

    def as_it_is(self, language: Language) -> str:
        """A sentence without names of facts: it may quote braces."""
        return self.zh if language is Language.ZH else self.en


PLANNING = Text("计划阶段", "planning")
PHASES = {
    Phase.FETCH: Text("读取", "fetch"),
    Phase.RENDER: Text("合成", "render"),
    Phase.UPLOAD: Text("上传", "upload"),
}

CAUSES = {
    "database_timeout": Text("数据库超时", "database timeout"),
    "database_connection": Text("数据库连接中断", "database connection lost"),
    "replica_conflict": Text("数据库副本冲突", "conflict with the replica's recovery"),
    "page_too_large": Text("单页过大，内存不足", "page too large for memory"),
    "disk_full": Text("磁盘已满", "disk full"),
    "spool_lost": Text("暂存数据丢失或损坏", "spooled data lost or damaged"),
    "store_unavailable": Text("文件存储不可用", "file store not available"),
    "row_limit": Text("行数超过上限", "more rows than allowed"),
    "max_runtime": Text("运行时间超过上限", "ran longer than allowed"),
    "specification_changed": Text("导出设置已更改", "columns or file settings have changed"),
    "poison": Text("该页多次使工作进程中止", "the page ended its worker several times"),
    "unclassified": Text("内部错误", "internal error"),
}


def failure_sentence(failure: Failure, language: Language) -> str:
    """Where and why a task failed, in one sentence.

    `fetch failed on 2026-09-14, page 7 (after id 18342): database timeout, 4 attempts.`
    """
    cause = CAUSES.get(failure.code)
    facts = {
        "phase": (PHASES[failure.phase] if failure.phase else PLANNING).say(language),
        "place": _place(failure, language),
        "cause": cause.say(language) if cause else failure.code.replace("_", " "),
        "attempts": _attempts(failure.attempts, language),
    }
    return Text("{phase}{place}失败：{cause}{attempts}。", "{phase} failed{place}: {cause}{attempts}.").say(
        language, **facts
    )


def _place(failure: Failure, language: Language) -> str:
    parts = []
    if failure.shard_id:
        parts.append(Text(" {shard} ", " on {shard}").say(language, shard=failure.shard_id))
    if failure.page:
        parts.append(_page(failure, language, first=not parts))
    if failure.cursor:
        parts.append(Text("（id {cursor} 之后）", " (after id {cursor})").say(language, cursor=failure.cursor))
    return "".join(parts)


def _page(failure: Failure, language: Language, *, first: bool) -> str:
    if failure.phase is Phase.UPLOAD:
        return Text("第 {page} 个分段", " at part {page}").say(language, page=failure.page)
    return Text("第 {page} 页", " at page {page}" if first else ", page {page}").say(language, page=failure.page)


def _attempts(attempts: int, language: Language) -> str:
    if not attempts:
        return ""
    plural = "attempt" if attempts == 1 else "attempts"
    return Text("，共尝试 {attempts} 次", ", {attempts} {plural}").say(language, attempts=attempts, plural=plural)


ISSUES = {
    "no_time_index": Text("时间列没有索引，读取会很慢", "the time column has no index: reading will be slow"),
    "touches_now": Text(
        "范围包含今天或以后，最新的订单可能不在文件中",
        "the range touches today: the newest orders may not be in the file",
    ),
    "not_all_counted": Text("未能及时统计所有日期", "not every day could be counted in time"),
    "row_limit": CAUSES["row_limit"],
}
"""What a dry run finds, by its code."""

REQUIRED = "is required"
NOT_TEXT = "must be text"
NOT_PRINTABLE = "must have 1 to 255 printable characters"
NOT_A_DAY = "must be a date that exists, as YYYY-MM-DD"
DAY_OUT_OF_RANGE = "must lie between 1970-01-01 and 9998-12-31"
REVERSED = "must not be before `from`"
NOT_A_FORMAT = "must be csv or xlsx"
KEY_DIFFERS = "must equal the Idempotency-Key header"
NOT_A_STATE = "must be queued, running, succeeded, failed or cancelled"
NOT_A_LIMIT = "must be a whole number from 1 to 100"
NOT_A_MOMENT = "must be a time in UTC, as 2026-09-01T08:30:00.123Z"
NOT_A_TASK_ID = "must be a taskId"
NOT_BOOLEAN = "must be true or false"
NOT_A_REASON = "must have at most 200 printable characters"
NOT_ATTEMPTS = "must be a whole number from 1 to 10"
NOT_A_MULTIPLIER = "must be a number from 1 to 10"
NOT_A_CALLBACK = "must be the id of a callback of this task"
NOT_EMPTY = "must not be empty"
NOT_A_FILTER = "is not a filter"
NOT_A_CHOICE = "must be one of those on offer"
TOO_LONG = "must have at most 255 characters"
NOT_TASK_IDS = "must be taskIds"
NOT_IN_A_BODY = "must be a parameter of the query: this address takes no body"

REASONS_ZH = {
    REQUIRED: "必填",
    NOT_TEXT: "必须是文本",
    NOT_PRINTABLE: "必须为 1 到 255 个可打印字符",
    NOT_A_DAY: "必须是存在的日期，格式为 YYYY-MM-DD",
    DAY_OUT_OF_RANGE: "必须在 1970-01-01 与 9998-12-31 之间",
    REVERSED: "不得早于 from",
    NOT_A_FORMAT: "必须是 csv 或 xlsx",
    KEY_DIFFERS: "必须与请求头 Idempotency-Key 相同",
    NOT_A_STATE: "必须是 queued、running、succeeded、failed 或 cancelled",
    NOT_A_LIMIT: "必须是 1 到 100 的整数",
    NOT_A_MOMENT: "必须是 UTC 时间，例如 2026-09-01T08:30:00.123Z",
    NOT_A_TASK_ID: "必须是 taskId",
    NOT_BOOLEAN: "必须是 true 或 false",
    NOT_A_REASON: "最多 200 个可打印字符",
    NOT_ATTEMPTS: "必须是 1 到 10 的整数",
    NOT_A_MULTIPLIER: "必须是 1 到 10 的数",
    NOT_A_CALLBACK: "必须是该任务的回调 id",
    NOT_EMPTY: "不能为空",
    NOT_A_FILTER: "不是筛选条件",
    NOT_A_CHOICE: "必须是所提供的选项之一",
    TOO_LONG: "最多 255 个字符",
    NOT_TASK_IDS: "必须是 taskId",
    NOT_IN_A_BODY: "必须是查询参数：此地址不接受请求体",
}


@dataclass(frozen=True, slots=True)
class ProblemText:
    """Status, title and detail of a refusal."""

    status: int
    title: Text
    detail: Text


def _problem(status: int, zh_title: str, en_title: str, zh_detail: str, en_detail: str) -> ProblemText:
    return ProblemText(status, Text(zh_title, en_title), Text(zh_detail, en_detail))


PROBLEMS: Mapping[str, ProblemText] = {
    "bad_request": _problem(400, "请求有误", "Bad request", "无法理解该请求。", "The request cannot be understood."),
    "invalid_body": _problem(
        400,
        "请求体有误",
        "Invalid body",
        "请求体必须是一个 JSON 对象，键不重复，UTF-8 编码。",
        "The body must be one JSON object in UTF-8, without repeated keys.",
    ),
    "invalid_field": _problem(400, "字段有误", "Invalid field", "{field}：{reason}。", "{field} {reason}."),
    "not_authenticated": _problem(
        401, "未登录", "Not authenticated", "缺少身份凭证。", "The request carries no credentials."
    ),
    "authentication_failed": _problem(
        401, "身份验证失败", "Authentication failed", "身份凭证无效。", "The credentials are not valid."
    ),
    "permission_denied": _problem(
        403, "没有权限", "Permission denied", "没有执行此操作的权限。", "You have no right to do this."
    ),
    "loopback_only": _problem(
        403,
        "仅限本机",
        "Loopback only",
        "演示模式只接受来自本机的请求。",
        "Without authentication only requests from this machine are answered.",
    ),
    "link_invalid": _problem(
        403,
        "下载链接无效",
        "Invalid link",
        "下载链接无效，请重新查询任务。",
        "The link is not valid; read the task again for a new one.",
    ),
    "link_expired": _problem(
        410,
        "下载链接已过期",
        "Link expired",
        "下载链接已过期，请重新查询任务。",
        "The link has expired; read the task again for a new one.",
    ),
    "link_outdated": _problem(
        410,
        "下载链接已失效",
        "Link outdated",
        "任务已重新运行，请重新查询任务。",
        "The task was run again since; read it again for a new link.",
    ),
    "not_found": _problem(404, "地址不存在", "Not found", "没有这个地址。", "There is nothing at this address."),
    "task_not_found": _problem(
        404, "任务不存在", "Unknown task", "任务不存在，或不属于你。", "There is no such task, or it is not yours."
    ),
    "method_not_allowed": _problem(
        405, "方法不允许", "Method not allowed", "此地址不支持该方法。", "This address does not answer that method."
    ),
    "not_acceptable": _problem(
        406,
        "无法接受",
        "Not acceptable",
        "不提供所要求的媒体类型。",
        "This address does not serve what `Accept` asks for.",
    ),
    "request_conflict": _problem(
        409,
        "requestId 冲突",
        "requestId in use",
        "该 requestId 已用于另一个请求。",
        "This requestId belongs to another request; a new request takes a new one.",
    ),
    "cannot_cancel": _problem(
        409, "无法取消", "Cannot cancel", "任务已是 {state}，无法取消。", "The task is {state} and cannot be cancelled."
    ),
    "cannot_rerun": _problem(
        409,
        "无法重跑",
        "Cannot rerun",
        "任务处于 {state}，只有失败的任务可以重跑。",
        "The task is {state}; only a failed task can run again.",
    ),
    "specification_changed": _problem(
        409,
        "导出规格已变更",
        "Specification changed",
        "导出规格已变更，只能从头重跑。",
        "The specification has changed since; the task can only run again from scratch.",
    ),
    "file_not_ready": _problem(
        409,
        "文件未就绪",
        "File not ready",
        "任务处于 {state}，没有可下载的文件。",
        "The task is {state}; it has no file.",
    ),
    "no_callback": _problem(
        409, "没有回调", "No callback", "该任务没有可重放的回调。", "The task has no callback that could be sent anew."
    ),
    "task_gone": _problem(
        410, "已过保留期", "No longer kept", "该任务或其文件已过保留期。", "The task or its file is kept no longer."
    ),
    "task_deleted": _problem(
        410, "已删除", "Deleted", "该任务及其文件已被删除。", "The task and its file were deleted."
    ),
    "cannot_delete": _problem(
        409, "无法删除", "Cannot delete", "任务处于 {state}，请先取消。", "The task is {state}; cancel it first."
    ),
    "body_too_large": _problem(
        413, "请求体过大", "Body too large", "请求体最多 {limit} 字节。", "The body may have at most {limit} bytes."
    ),
    "unsupported_media_type": _problem(
        415,
        "媒体类型不支持",
        "Unsupported media type",
        "请求体必须是 application/json，UTF-8 编码，未经压缩。",
        "The body must be application/json in UTF-8, and not compressed.",
    ),
    "range_not_satisfiable": _problem(
        416,
        "范围无效",
        "Range not satisfiable",
        "文件有 {size} 字节，请求的范围在其之外。",
        "The file has {size} bytes; the range lies outside.",
    ),
    "window_too_long": _problem(
        422,
        "日期范围过长",
        "Window too long",
        "从 from 到 to 共 {days} 天，最多 {limit} 天（设置 max_days）。",
        "`from` to `to` has {days} days, at most {limit} are allowed (setting max_days).",
    ),
    "queue_full": _problem(
        429,
        "排队任务过多",
        "Queue full",
        "排队中的任务已达 {limit} 个，请在其中一个结束后再提交。",
        "{limit} of your tasks are queued; submit again when one has ended.",
    ),
    "too_many_submits": _problem(
        429,
        "提交过于频繁",
        "Too many submits",
        "每分钟最多提交 {limit} 个任务。",
        "At most {limit} tasks can be submitted in a minute.",
    ),
    "busy": _problem(
        503,
        "连接数已满",
        "Busy",
        "等待、推送、下载和预检的连接已满，请稍后再试。",
        "As many waits, streams, downloads and dry runs as can be are open; try again later.",
    ),
    "orders_unavailable": _problem(
        503,
        "暂时不可用",
        "Not available",
        "订单数据库暂时不可用，请稍后再试。",
        "The orders database is not available; try again later.",
    ),
    "state_unavailable": _problem(
        503,
        "暂时不可用",
        "Not available",
        "服务暂时不可用，请稍后再试。",
        "The service is not available; try again later.",
    ),
    "store_unavailable": _problem(
        503,
        "暂时不可用",
        "Not available",
        "文件存储暂时不可用，请稍后再试。",
        "The file store is not available; try again later.",
    ),
    "internal": _problem(
        500, "内部错误", "Internal error", "内部错误，已记录。", "An internal error; it has been logged."
    ),
}

"""Every refusal by its code: the one table behind the answers, docs/codes.md and the published schema."""


def reason_text(reason: str, language: Language) -> str:
    """A field's reason. Reasons are written in English; one without a translation stays so."""
    return REASONS_ZH.get(reason, reason) if language is Language.ZH else reason
