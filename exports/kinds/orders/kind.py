"""The orders kind, and the base of a team's own: subclass it with another model and other columns."""

import datetime as dt
import zoneinfo
from collections.abc import Sequence

from exports.blocks import Block
from exports.conf import conf
from exports.contracts import Column, ExportRequest, Preview, QueueName, Recount, Shard, Snapshot, TimeForm
from exports.errors import PageTooLarge
from exports.kinds.base import by_rows
from exports.kinds.orders import grants, inspection, ordering, pages, plan, preview, rules, source, windows
from exports.kinds.orders.bounds import Bounds
from exports.kinds.orders.columns import ORDER_COLUMNS
from exports.models import Order, ReadOnlyModel


class OrdersKind:
    """Rows of one table, a shard for each calendar day of the business zone, in key order.

    A subclass sets `name`, `model`, `columns` and `file_label`. Three rules hold for its table: the key (a whole
    number, a UUID or text) is unique, and the first column; keys rise with `time_field`, or `key_rises` is False and
    rows stand in the order of time and key; neither of the two ever changes. The type of a column fits its field
    (`rules`).
    """

    name = "orders"
    model: type[ReadOnlyModel] = Order
    columns: Sequence[Column] = ORDER_COLUMNS
    time_field = "created_at"
    key_rises = True
    file_label = "订单"

    def __init__(self) -> None:
        """Raises: SettingInvalid when model and columns break a rule above."""
        self._source = source.Source(model=self.model, time_field=self.time_field, key_rises=self.key_rises)
        rules.check(self.name, self._source, columns=self.columns)
        self._pages = pages.PageReader(self._source, columns=self.columns)

    def shard_ids(self, request: ExportRequest) -> list[str]:
        return [day.isoformat() for day in windows.days(request.first_day, request.last_day)]

    def queue_class(self, rows: int) -> QueueName:
        return by_rows(rows)

    def preview(self, request: ExportRequest, *, within_s: float) -> Preview:
        days = list(windows.days(request.first_day, request.last_day))
        return preview.look(self._source, days=days, zone=_zone(), within_s=within_s)

    def take_snapshot(self, request: ExportRequest) -> Snapshot:
        _, end = windows.day_bounds(request.last_day, zone=_zone())
        return plan.take_snapshot(self._source, window_end=end)

    def plan_shard(self, request: ExportRequest, snapshot: Snapshot, shard_id: str) -> Shard:
        window = windows.day_bounds(dt.date.fromisoformat(shard_id), zone=_zone())
        return plan.plan_shard(self._source, snapshot=snapshot, shard_id=shard_id, window=window)

    def read(self, shard: Shard, cursor: str, limit: int, form: TimeForm, masked: frozenset[str]) -> Block:
        try:
            return self._pages.read(shard.bounds, cursor=cursor, limit=limit, form=form, masked=masked)
        except MemoryError:
            raise PageTooLarge(f"{limit} rows") from None

    def recount(self, shard: Shard, snapshot: Snapshot) -> Recount:
        return plan.recount(self._source, shard=shard, snapshot=snapshot)

    def keys(self, shard: Shard) -> tuple[str, str] | None:
        if self.columns[0].personal:
            return None
        bounds, order = Bounds.from_text(shard.bounds), ordering.of(self._source)
        return order.key(bounds.first), order.key(bounds.last)

    def file_stem(self, request: ExportRequest) -> str:
        return f"{self.file_label}_{request.first_day}_{request.last_day}"

    def write_privileges(self) -> tuple[str, ...]:
        """Rights of the database role beyond reading; empty is right. For `export_doctor` and the system check."""
        return grants.write_privileges(self._source)

    def table_findings(self) -> list[inspection.TableFinding]:
        """How fit the table is for being exported. For `export_doctor`."""
        return inspection.inspect(self._source, columns=self.columns, zone=_zone())

    def release(self, task_id: str) -> None:
        """Nothing is held between statements."""


def _zone() -> zoneinfo.ZoneInfo:
    return zoneinfo.ZoneInfo(conf().business_zone)
