"""The settings of this package: one frozen object, defaults and bounds in one place.

`Conf` is filled from `settings.EXPORTS` (a dict with the names below); unknown names and values out
of bounds are refused with the setting's name. `docs/settings.md` is made from this table.
"""

import functools
import zoneinfo
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from exports.errors import SettingInvalid

_DAY_MS = 86_400_000


def _setting(
    default: Any, effect: str, low: int | None = None, high: int | None = None, choices: tuple[str, ...] = ()
) -> Any:
    return field(default=default, metadata={"effect": effect, "low": low, "high": high, "choices": choices})


def _secret(effect: str, *, default: Any = "") -> Any:
    return field(default=default, repr=False, metadata={"effect": effect, "low": None, "high": None, "choices": ()})


@dataclass(frozen=True, slots=True)
class Conf:
    """Every setting with its default. Names carry their unit."""

    # what is exported
    kinds: tuple[str, ...] = _setting(
        ("exports.kinds.orders.OrdersKind",), "Classes of the kinds; the first one serves `POST /api/orders/export`"
    )
    business_zone: str = _setting(
        "Asia/Shanghai", "IANA time zone whose calendar days are the shards and whose wall clock stands in the file"
    )
    settle_lag_s: int = _setting(60, "Rows younger than this are left out when the window touches now", 0, 3600)
    xmin_wait_s: int = _setting(30, "Longest wait at plan for older PostgreSQL transactions to end", 0, 3600)
    max_days: int = _setting(366, "Longest window of a task, in days", 1, 3660)
    max_rows: int = _setting(5_000_000, "Most rows of a task; known after planning", 1)

    max_runtime_s: int = _setting(21_600, "A task that was worked on for longer fails; a rerun goes on", 1, 31 * 86_400)
    stalled_after_s: int = _setting(
        120, "A running task without progress for this long is marked as stalled", 1, 86_400
    )
    running_per_owner: int = _setting(4, "Most running tasks of an owner; more wait in the queue", 1, 10_000)
    queued_per_owner: int = _setting(20, "Most queued tasks of an owner; a further submit is refused", 1, 100_000)
    submits_per_minute: int = _setting(60, "Most tasks that an owner makes in a minute", 1, 100_000)

    # queues
    fast_rows: int = _setting(20_000, "A planned task of at most so many rows goes into the queue `fast`", 0)
    normal_rows: int = _setting(500_000, "One of at most so many rows into `normal`, a larger one into `slow`", 0)
    fast_s: int = _setting(20, "A task of `fast` that was worked on for longer moves on to `normal`", 1, 86_400)
    normal_s: int = _setting(300, "A task of `normal` that was worked on for longer moves on to `slow`", 1, 86_400)
    lanes_help: bool = _setting(
        True, "Workers of the groups `normal` and `slow` that have nothing to do in their own queue help the others"
    )
    owner_weights: tuple[str, ...] = _setting(
        (), "Shares of lane time by owner, such as `finance=3`; every other owner has 1"
    )

    # reading
    page_rows: int = _setting(2000, "Rows of a page", 1, 2000)
    page_rows_min: int = _setting(200, "Smallest page after halving", 1, 2000)
    statement_timeout_ms: int = _setting(8000, "Time limit of a page's statement", 100, 600_000)
    plan_statement_timeout_ms: int = _setting(30_000, "Time limit of a count at plan", 100, 600_000)
    page_deadline_ms: int = _setting(20_000, "A page that takes longer no longer renews its lease", 200, 600_000)
    database_leases: int = _setting(
        8, "Most steps that read the database at the same time, over all tasks and hosts", 1, 1000
    )

    guard_page_ms: int = _setting(
        100, "The database is spared while pages take twice their usual time and longer than this", 1, 600_000
    )
    guard_leases: int = _setting(
        2, "While it is spared, most steps that read it before one of `normal` or `slow` may join", 1, 1000
    )

    # the file
    header_language: str = _setting("zh", "Language of the header", choices=("zh", "en"))
    charset: str = _setting("utf-8-sig", "Charset of CSV", choices=("utf-8-sig", "utf-8", "gb18030"))
    delimiter: str = _setting(",", "Delimiter of CSV", choices=(",", ";", "\t"))
    mask_personal: bool = _setting(
        False, "Personal-data columns show `***` to owners without the right `export.personal`"
    )
    formula_guard: bool = _setting(True, "An apostrophe in front of CSV text that a spreadsheet may take for a formula")
    sheet_rows: int = _setting(1_048_576, "Rows of a sheet, its header included", 2, 1_048_576)
    sheet_title: str = _setting("订单", "Name of the sheets")

    # steps
    leases_per_task: int = _setting(4, "Most steps of one task at the same time", 1, 64)
    lease_ms: int = _setting(60_000, "Life of a lease without a sign of life", 500, 3_600_000)
    renew_every_ms: int = _setting(10_000, "Pause between renewals of a lease", 50, 600_000)
    slice_ms: int = _setting(25_000, "A lane gives its place back after this time", 0, 600_000)
    sweep_every_ms: int = _setting(5000, "Pause between two sweeps", 50, 600_000)
    retry_delays_ms: tuple[int, ...] = _setting(
        (1000, 4000, 16_000), "Pauses before a page or an upload is tried again; then the task fails"
    )
    recoveries_max: int = _setting(3, "A page that was lost with its worker this often fails the task", 1, 100)
    cancel_grace_ms: int = _setting(4000, "A reader or the sweep completes a cancel that is older than this", 0, 60_000)
    worker_rss_mb: int = _setting(256, "A worker above this memory leaves and is started again", 64)
    worker_slices: int = _setting(200, "A worker leaves after this many messages and is started again", 1)

    # keeping
    spool: str = _setting(
        "folder",
        "Where unfinished work rests: `folder` (`spool_dir`), or `s3` (the bucket), which workers on several hosts need",
        choices=("folder", "s3"),
    )
    spool_dir: Path = _setting(Path("var/spool"), "Folder of unfinished work; shared by the processes of one host")
    spool_wait_s: int = _setting(
        900, "Tasks on a spool fail when none of its workers has come back for this long", 1, 86_400
    )
    spool_sync: str = _setting("shard", "When segment bytes are forced to disk", choices=("page", "shard", "off"))
    spool_reserve_mb: int = _setting(256, "Free space that large exports leave for small ones", 0)
    storage: str = _setting(
        "folder", "Where finished files go: `folder` (`store_dir`) or `s3`", choices=("folder", "s3")
    )
    store_dir: Path = _setting(Path("var/files"), "Folder of finished files")
    s3_bucket: str = _setting("", "Bucket of finished files, and of the spool if it is there")
    s3_prefix: str = _setting("", "What the keys in the bucket begin with, such as `exports`")
    s3_endpoint_url: str = _setting(
        "", "URL of an S3 that is not AWS; browsers are sent there for downloads. Empty: AWS"
    )
    s3_region: str = _setting("us-east-1", "Region of the bucket")
    s3_addressing: str = _setting("auto", "Bucket in the host name or in the path", choices=("auto", "virtual", "path"))
    s3_access_key: str = _setting("", "Access key; empty: boto3's own sources, such as the role of the host")
    s3_secret_key: str = _secret("Secret of `s3_access_key`")
    s3_encryption: str = _setting(
        "bucket",
        "Server-side encryption: the bucket's own, or one that is asked for",
        choices=("bucket", "AES256", "aws:kms"),
    )
    s3_kms_key: str = _setting("", "KMS key of `aws:kms`; empty: the account's own")
    s3_part_mb: int = _setting(8, "Size of a part; larger for files of more than 10,000 parts", 5, 64)
    state_days: int = _setting(7, "Days that a task is kept after its end, its requestId included", 1, 365)
    file_days: int = _setting(7, "Days that a file is kept; at most state_days", 1, 365)

    # watching
    tracing: bool = _setting(
        False,
        "Spans of OpenTelemetry, sent over OTLP as the standard `OTEL_*` variables say; needs `requirements/otel.txt`",
    )

    # the web process
    long_requests: int = _setting(
        8,
        "Most waits, streams, downloads and dry runs at the same time in a web process; half of its threads by default",
        1,
        1000,
    )
    stream_s: int = _setting(300, "A stream of events ends after this time; its reader comes back by itself", 1, 3600)

    # access
    auth: str = _setting(
        "token",
        "Who is asked for identity: `token`, `gateway`, or `none` (loopback demo only)",
        choices=("token", "gateway", "none"),
    )
    tokens: tuple[Mapping[str, Any], ...] = _secret(
        "List of `{owner, sha256, rights}`; sha256 of a token of at least 128 random bits", default=()
    )
    gateway_secret: str = _secret("Shared secret that a trusted gateway sends in `X-Gateway-Secret`")
    link_minutes: int = _setting(15, "Life of a download link", 1, 1440)

    # callbacks
    callbacks: tuple[Mapping[str, Any], ...] = _secret(
        "List of `{id, owner, url, events, secrets}`: who is told of the ends of tasks; see [callbacks.md](callbacks.md#endpoints)",
        default=(),
    )
    callback_timeout_ms: int = _setting(10_000, "Longest time of one delivery, its answer included", 100, 60_000)
    callback_delays_ms: tuple[int, ...] = _setting(
        (5000, 30_000, 120_000, 600_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000),
        "Pauses, give or take a fifth, before a delivery is tried again; then it has failed",
    )
    callback_plain_http: bool = _setting(False, "Endpoints may have `http://` URLs")
    callback_private_addresses: bool = _setting(
        False, "Endpoints may have addresses of private networks and of this machine"
    )

    # parts
    redis_url: str = _setting(
        "redis://127.0.0.1:6379/1", "Redis database of the state; not the broker's and not a cache's"
    )
    database: str = _setting("orders", "Alias of the orders database in `DATABASES`")

    def weight_of(self, owner: str) -> int:
        """The owner's share of lane time, against 1 of every other."""
        weights = dict(entry.rpartition("=")[::2] for entry in self.owner_weights)
        return int(weights.get(owner, 1))


def _check(spec: "Field[Any]", value: Any) -> None:
    name, meta = spec.name, spec.metadata
    if meta["choices"] and value not in meta["choices"]:
        raise SettingInvalid(name, f"must be one of {', '.join(map(repr, meta['choices']))}")
    kind = type(spec.default)
    if kind is int and (not isinstance(value, int) or isinstance(value, bool)):
        raise SettingInvalid(name, "must be a whole number")
    if kind is bool and not isinstance(value, bool):
        raise SettingInvalid(name, "must be true or false")
    if kind is str and not isinstance(value, str):
        raise SettingInvalid(name, "must be text")
    if meta["low"] is not None and value < meta["low"]:
        raise SettingInvalid(name, f"must be at least {meta['low']}")
    if meta["high"] is not None and value > meta["high"]:
        raise SettingInvalid(name, f"must be at most {meta['high']}")


def _check_together(conf: Conf) -> None:
    if conf.business_zone not in zoneinfo.available_timezones():
        raise SettingInvalid("business_zone", "is not an IANA time zone, such as Asia/Shanghai")
    if conf.file_days > conf.state_days:
        raise SettingInvalid("file_days", "must not exceed state_days")
    if conf.page_rows_min > conf.page_rows:
        raise SettingInvalid("page_rows_min", "must not exceed page_rows")
    if conf.renew_every_ms * 2 > conf.lease_ms:
        raise SettingInvalid("renew_every_ms", "must be at most half of lease_ms")
    if conf.statement_timeout_ms >= conf.page_deadline_ms:
        raise SettingInvalid("statement_timeout_ms", "must be less than page_deadline_ms")
    _check_queues(conf)
    _check_pauses(conf)
    _check_storage(conf)
    if not conf.kinds:
        raise SettingInvalid("kinds", "must name at least one kind")


def _check_queues(conf: Conf) -> None:
    for fast, normal in (("fast_rows", "normal_rows"), ("fast_s", "normal_s")):
        if getattr(conf, fast) > getattr(conf, normal):
            raise SettingInvalid(fast, f"must not exceed {normal}")
    for entry in conf.owner_weights:
        owner, _, weight = entry.rpartition("=")
        if not owner or not weight.isascii() or not weight.isdigit() or not 1 <= int(weight) <= 1000:
            raise SettingInvalid("owner_weights", "must be `owner=weight`, each weight from 1 to 1000")


def _check_pauses(conf: Conf) -> None:
    for name in ("retry_delays_ms", "callback_delays_ms"):
        if not all(isinstance(delay, int) and 0 <= delay <= _DAY_MS for delay in getattr(conf, name)):
            raise SettingInvalid(name, "must be whole numbers of milliseconds, each at most a day")
    if not conf.callback_delays_ms:
        raise SettingInvalid("callback_delays_ms", "must hold at least one pause")


def _check_storage(conf: Conf) -> None:
    """Half a configuration would store files where nobody looks for them."""
    if conf.storage == "s3" and not conf.s3_bucket:
        raise SettingInvalid("s3_bucket", "is needed with storage 's3'")
    if conf.spool == "s3" and conf.storage != "s3":
        raise SettingInvalid("storage", "must be 's3' where spool is 's3'")
    if conf.storage == "folder":
        for spec in fields(Conf):
            if spec.name.startswith("s3_") and getattr(conf, spec.name) != spec.default:
                raise SettingInvalid("storage", f"must be 's3' where {spec.name} is set")
    _check_s3(conf)


def _check_s3(conf: Conf) -> None:
    if bool(conf.s3_access_key) != bool(conf.s3_secret_key):
        missing = "s3_secret_key" if conf.s3_access_key else "s3_access_key"
        raise SettingInvalid(missing, "is needed: access key and secret belong together")
    if conf.s3_kms_key and conf.s3_encryption != "aws:kms":
        raise SettingInvalid("s3_encryption", "must be 'aws:kms' where s3_kms_key is set")
    if conf.s3_endpoint_url and not conf.s3_endpoint_url.startswith(("https://", "http://")):
        raise SettingInvalid("s3_endpoint_url", "must be an http:// or https:// URL")
    if conf.s3_prefix.startswith("/") or conf.s3_prefix.endswith("/"):
        raise SettingInvalid("s3_prefix", "must not begin or end with a slash")


def load(values: Mapping[str, Any]) -> Conf:
    """Settings out of a mapping. Raises: SettingInvalid with the name of the first wrong one."""
    known = {spec.name: spec for spec in fields(Conf)}
    for name in values:
        if name not in known:
            raise SettingInvalid(name, "is not a setting of exports")
    for name, value in values.items():
        _check(known[name], value)
    conf = Conf(**values)
    _check_together(conf)
    return conf


@functools.cache
def conf() -> Conf:
    """The settings in force; read once, and again when a test overrides them."""
    return load(getattr(settings, "EXPORTS", {}))


def _forget(*, setting: str, **_: object) -> None:
    if setting == "EXPORTS":
        conf.cache_clear()


setting_changed.connect(_forget)
