"""The orders kind, and the base of a team's own: subclass it with another model and other columns."""

import datetime as dt
import zoneinfo
from collections.abc import Sequence

from django.db import models

from exports.blocks import Block
from exports.conf import conf
from exports.contracts import CellType, Column, ExportRequest, Recount, Shard, Snapshot, TimeForm
from exports.errors import PageTooLarge, SettingInvalid
from exports.kinds.orders import grants, inspection, pages, plan, source, windows
from exports.kinds.orders.columns import ORDER_COLUMNS
from exports.models import Order, ReadOnlyModel


class OrdersKind:
    """Rows of one table, a shard for each calendar day of the business zone, in key order.

    A subclass sets `name`, `model`, `columns` and `file_label`. Three rules hold for its table: the key is a
    whole number, unique, and the first column; keys rise with `time_field`; neither of the two ever changes.
    """

    name = "orders"
    model: type[ReadOnlyModel] = Order
    columns: Sequence[Column] = ORDER_COLUMNS
    time_field = "created_at"
    key_rises = True
    file_label = "订单"

    def __init__(self) -> None:
        """Raises: SettingInvalid when model and columns break a rule above."""
        self._source = source.Source(model=self.model, time_field=self.time_field)
        key = self._source.field(self._source.key)
        if not isinstance(key, models.IntegerField):
            raise SettingInvalid("kinds", f"{self.name}: the primary key must be a whole number")
        if not self.key_rises:
            raise SettingInvalid("kinds", f"{self.name}: keys that do not rise with time are not supported")
        if self.columns[0].name != key.name:
            raise SettingInvalid("kinds", f"{self.name}: the first column must be the key, {key.name}")
        for column in self.columns:
            binary = isinstance(self._source.field(column.name), models.BinaryField)
            if binary and column.type is not CellType.BYTES:
                # MariaDB and MySQL would show "?" for what is no text, and nobody would be told.
                raise SettingInvalid("kinds", f"{self.name}: {column.name} is binary, so its type must be BYTES")
        self._pages = pages.PageReader(self._source, columns=self.columns)

    def shard_ids(self, request: ExportRequest) -> list[str]:
        return [day.isoformat() for day in windows.days(request.first_day, request.last_day)]

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
