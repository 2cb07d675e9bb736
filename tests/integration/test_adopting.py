"""The page for adopters: its examples, exactly as printed, export their tables."""

import csv
import io
import re
import sys
import uuid
from pathlib import Path

import pytest

from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase

PAGE = Path(__file__).resolve().parents[2] / "docs/adopting.md"


SHIPMENTS = "CREATE TABLE shipments (id integer PRIMARY KEY, shipped_at, carrier, receiver, weight)"
PARCELS = "CREATE TABLE parcels (id char(32) PRIMARY KEY, weighed_at, place)"
LATE = "f0f0f0f0-0000-4000-8000-000000000000"
EARLY = "0a0a0a0a-0000-4000-8000-000000000000"


@pytest.mark.usefixtures("desk")
def test_the_examples_for_adopters_export_their_tables(
    sqlite_orders: OrdersDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 2
    (tmp_path / "acme_exports.py").write_text("".join(examples), "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    sqlite_orders.execute(SHIPMENTS)
    sqlite_orders.execute("INSERT INTO shipments VALUES (1, '2026-09-01 04:00:00', 'SF', '张三', 1.5)")
    sqlite_orders.execute(PARCELS)
    for key, time in ((EARLY, "2026-09-01 05:00:00"), (LATE, "2026-09-01 04:00:00.25")):
        sqlite_orders.execute("INSERT INTO parcels VALUES (%s, %s, '甲')", (uuid.UUID(key).hex, time))
    with exports_settings(kinds=("acme_exports.ShipmentsKind", "acme_exports.ParcelsKind")):
        assert exported("shipments") == [
            ["发货单ID", "发货时间", "承运商", "收货人", "重量"],
            ["1", "2026-09-01T12:00:00+08:00", "SF", "张三", "1.500"],
        ]
        assert exported("parcels") == [
            ["包裹ID", "称重时间", "地点"],
            [LATE, "2026-09-01T12:00:00.25+08:00", "甲"],
            [EARLY, "2026-09-01T13:00:00+08:00", "甲"],
        ]
    sys.modules.pop("acme_exports")


def exported(kind: str) -> list[list[str]]:
    text = pipeline.export("2026-09-01", "2026-09-01", kind=kind).decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))
