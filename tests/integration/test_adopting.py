"""The page for adopters: its example, exactly as printed, exports a table."""

import csv
import io
import re
import sys
from pathlib import Path

import pytest

from exports.contracts import State
from tests import pipeline
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase

PAGE = Path(__file__).resolve().parents[2] / "docs/adopting.md"


@pytest.mark.usefixtures("desk")
def test_the_example_for_adopters_exports_their_table(
    sqlite_orders: OrdersDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    (tmp_path / "acme_exports.py").write_text(found[1], "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    sqlite_orders.execute("CREATE TABLE shipments (id integer PRIMARY KEY, shipped_at, carrier, receiver, weight)")
    sqlite_orders.execute("INSERT INTO shipments VALUES (1, '2026-09-01 04:00:00', 'SF', '张三', 1.5)")
    with exports_settings(kinds=("acme_exports.ShipmentsKind",)):
        task_id = pipeline.submit("2026-09-01", "2026-09-01", kind="shipments")
        assert pipeline.work(task_id).state is State.SUCCEEDED
        text = pipeline.read_file(task_id).decode("utf-8-sig")
    assert list(csv.reader(io.StringIO(text, newline=""), strict=True)) == [
        ["发货单ID", "发货时间", "承运商", "收货人", "重量"],
        ["1", "2026-09-01T12:00:00+08:00", "SF", "张三", "1.500"],
    ]
    sys.modules.pop("acme_exports")
