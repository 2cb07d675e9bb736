"""The bytes of every type of column are the same on SQLite, PostgreSQL and MariaDB."""

import hashlib
import uuid
from typing import Any

import pytest

from exports.blocks import CELL, ROW, Block
from exports.contracts import ExportRequest, Format, TimeForm
from exports.kinds.orders import OrdersKind, sample, statements
from exports.kinds.orders.windows import days
from tests import typed_orders
from tests.conftest import exports_settings
from tests.databases import OrdersDatabase, utc

NONE: frozenset[str] = frozenset()

SAMPLE_DIGESTS = ["f94f200878fd7325", "a8d6a876c27c94cf"]
ASKED = ExportRequest(
    "orders", "owner", "r-1", utc("2026-09-14 00:00:00").date(), utc("2026-09-14 00:00:00").date(), Format.CSV
)
TOKEN = uuid.UUID("7d1c2f60-1b7a-4c55-9e0e-2a6f5b3c9d10")


def read(kind: OrdersKind, form: TimeForm = TimeForm.TEXT, masked: frozenset[str] = NONE) -> Block:
    snapshot = kind.take_snapshot(ASKED)
    shard = kind.plan_shard(ASKED, snapshot, "2026-09-14")
    return kind.read(shard, "", 2000, form, masked)


def lines(block: Block) -> list[list[str]]:
    return [line.decode().split(CELL.decode()) for line in block.data.split(ROW)]


def column(database: OrdersDatabase, name: str, values: list[Any], form: TimeForm = TimeForm.TEXT) -> list[str]:
    """What a column shows for values stored in rows of their own."""
    typed_orders.create(database)
    for number, value in enumerate(values, start=1):
        typed_orders.add(database, number, **{name: value})
    kind = typed_orders.TypedKind()
    at = [shown.name for shown in kind.columns].index(name)
    return [cells[at] for cells in lines(read(kind, form))]


def test_null_of_every_type_is_empty(orders_db: OrdersDatabase) -> None:  # H005, H030
    typed_orders.create(orders_db)
    typed_orders.add(orders_db, 1)
    assert lines(read(typed_orders.TypedKind())) == [["1", "2026-09-14 12:00:00+08", *[""] * 16]]


def test_null_where_the_model_allows_none_is_empty_too(
    orders_db: OrdersDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a separator in a cell, which makes up for the one that is missing: the page then has its shape."""
    for name in ("note", "sku", "quantity", "fee"):
        monkeypatch.setattr(typed_orders.TypedOrder._meta.get_field(name), "null", False)
    typed_orders.create(orders_db)
    typed_orders.add(orders_db, 3, note="a\x1fb", quantity=3, fee="1.000")
    [cells] = lines(read(typed_orders.TypedKind()))
    assert cells[12:15] + cells[17:] == ["a\ufffdb", "", "3", "1.000"]


def test_every_type_has_one_text(orders_db: OrdersDatabase) -> None:  # H047, H049, H050, H051
    typed_orders.create(orders_db)
    typed_orders.add(
        orders_db,
        1,
        paid_at=utc("2026-09-14 04:00:01.120000"),
        unit_price="3.456789",
        discount="-42.00",
        weight=0.30000000000000004,
        is_gift=True,
        born="1899-12-29",
        extra='{"gift": true, "名": "张", "list": [1, null, "a"]}',
        token=TOKEN,
        payload=b"AB\xff",
        url="https://x.example/1?a=1&b=%20",
        note="甲",
        sku="004500",
        quantity=-3,
        status="paid",
        rate="0.0010",
        fee="-0.005",
    )
    assert lines(read(typed_orders.TypedKind())) == [
        [
            "1",
            "2026-09-14 12:00:00+08",
            "2026-09-14 12:00:01.12+08",
            "3.456789",
            "-42.00",
            "0.30000000000000004",
            "true",
            "1899-12-29",
            '{"gift": true, "list": [1, null, "a"], "名": "张"}',
            "7d1c2f60-1b7a-4c55-9e0e-2a6f5b3c9d10",
            "4142ff",
            "https://x.example/1?a=1&b=%20",
            "甲",
            "004500",
            "-3",
            "已付款",
            "0.0010",
            "-0.005",
        ]
    ]


def test_amounts_have_the_scale_of_their_column(orders_db: OrdersDatabase) -> None:  # H045
    assert column(orders_db, "discount", ["0", "100", "1234.5", "-0.02"]) == ["0.00", "100.00", "1234.50", "-0.02"]
    assert column(orders_db, "unit_price", ["0.001", "3"]) == ["0.001000", "3.000000"]


def test_floats_are_the_shortest_text_that_reads_back(orders_db: OrdersDatabase) -> None:
    values = [0.1 + 0.2, 3.0, 1e16, 1e-7, -0.5, 123456789.123456789]
    shown = column(orders_db, "weight", values)
    assert shown == ["0.30000000000000004", "3", "1e+16", "1e-07", "-0.5", "123456789.12345679"]


def test_numbers_that_are_not_finite_are_empty(orders_db: OrdersDatabase) -> None:  # H048
    if orders_db.vendor == "mysql":
        pytest.skip("MariaDB stores no such number")
    infinite = "Infinity" if orders_db.vendor == "postgresql" else float("inf")
    assert column(orders_db, "weight", [infinite, 1.5]) == ["", "1.5"]


def test_booleans_are_words(orders_db: OrdersDatabase) -> None:  # H051
    assert column(orders_db, "is_gift", [True, False, None]) == ["true", "false", ""]


@pytest.mark.parametrize(("language", "shown"), [("zh", "已付款"), ("en", "Paid")])
def test_a_status_shows_its_label_in_the_language_of_the_header(
    orders_db: OrdersDatabase, language: str, shown: str
) -> None:
    with exports_settings(header_language=language):
        assert column(orders_db, "status", ["paid", "Paid", "lost", None]) == [shown, "Paid", "lost", ""]


def test_half_a_surrogate_pair_in_json_is_replaced_and_named(sqlite_orders: OrdersDatabase) -> None:  # H035
    shown = column(sqlite_orders, "extra", [r'"ok\ud83d"', r'"\ufffd"', r'"\ud83d\ude00"'])
    assert shown == ['"ok\N{REPLACEMENT CHARACTER}"', '"\N{REPLACEMENT CHARACTER}"', '"😀"']
    assert read(typed_orders.TypedKind()).replaced == ("1",)


@pytest.mark.parametrize(
    ("stored", "text", "serial"),
    [
        ("2026-09-13 16:00:00", "2026-09-14 00:00:00+08", "46279"),
        ("2026-09-01 00:30:00.123000", "2026-09-01 08:30:00.123+08", "46266.35416809028"),
        ("2026-12-31 23:59:59.999999", "2027-01-01 07:59:59.999999+08", "46388.333333333321"),
        ("1900-02-28 15:54:16", "1900-02-28 23:59:59+08:05:43", "1900-02-28 23:59:59+08:05:43"),
        ("1988-07-01 00:00:00", "1988-07-01 09:00:00+09", "32325.375"),
    ],
)
def test_times_have_one_text_and_one_serial(orders_db: OrdersDatabase, stored: str, text: str, serial: str) -> None:
    assert column(orders_db, "paid_at", [utc(stored)]) == [text]
    [shown] = column(orders_db, "paid_at", [utc(stored)], TimeForm.SERIAL)
    assert shown == (repr(float(serial)).removesuffix(".0") if serial.replace(".", "").isdigit() else serial)


def test_separators_in_cells_are_replaced_and_named(orders_db: OrdersDatabase) -> None:
    orders_db.insert(
        [
            {"id": 1, "address": "路\x1f1\x1e号"},
            {"id": 2, "remark": "clean"},
            {"id": 3, "remark": "end\x1e"},
        ]
    )
    block = read(OrdersKind())
    assert [(cells[0], cells[7], cells[13]) for cells in lines(block)] == [
        ("1", "路\N{REPLACEMENT CHARACTER}1\N{REPLACEMENT CHARACTER}号", ""),
        ("2", "路1号", "clean"),
        ("3", "路1号", "end\N{REPLACEMENT CHARACTER}"),
    ]
    assert (block.rows, block.last_key, block.replaced) == (3, "3", ("1", "3"))


def test_a_repaired_page_has_the_same_times_and_amounts(orders_db: OrdersDatabase) -> None:
    orders_db.insert([{"id": 1, "remark": "a\x1fb", "paid_at": utc("2026-09-14 04:00:00.5")}])
    [cells] = lines(read(OrdersKind()))
    assert cells[:4] == ["1", "2026091400012345678", "2026-09-14 12:00:00+08", "2026-09-14 12:00:00.5+08"]
    assert cells[9:13] == ["1", "10.10", "10.10", "CNY"]


def test_bytes_that_are_no_utf8_are_replaced_and_named(sqlite_orders: OrdersDatabase) -> None:  # H031
    sqlite_orders.insert([{"id": 1}, {"id": 2}])
    sqlite_orders.execute("UPDATE orders SET remark = CAST(x'6F6BFF21' AS TEXT) WHERE id = 2")
    block = read(OrdersKind())
    assert [cells[13] for cells in lines(block)] == ["", "ok\N{REPLACEMENT CHARACTER}!"]
    assert block.replaced == ("2",)


def test_nul_and_other_controls_pass_as_they_are(
    orders_db: OrdersDatabase,
) -> None:  # H031, H032: the formats replace them
    nul = "" if orders_db.vendor == "postgresql" else "\x00"
    orders_db.add(1, remark=f"路1{nul}号\x0b\r\n😀\ufeff")
    block = read(OrdersKind())
    assert lines(block)[0][13] == f"路1{nul}号\x0b\r\n😀\ufeff"
    assert block.replaced == ()


def test_masked_columns_show_three_stars_and_are_not_read(orders_db: OrdersDatabase) -> None:
    orders_db.insert([{"id": 1, "customer_name": "张三\x1f"}])
    block = read(OrdersKind(), masked=frozenset({"customer_name", "phone", "address", "remark"}))
    cells = lines(block)[0]
    assert (cells[5], cells[6], cells[7], cells[13]) == ("***",) * 4
    assert block.replaced == ()


def test_a_percent_sign_in_a_mask_or_cell_is_a_character(orders_db: OrdersDatabase) -> None:
    orders_db.add(1, remark="100% %s %(a)s")
    assert lines(read(OrdersKind()))[0][13] == "100% %s %(a)s"


def test_sample_orders_have_the_same_bytes_everywhere(orders_db: OrdersDatabase) -> None:
    orders_db.insert_rows(sample.generate(3000, days=3))
    kind = OrdersKind()
    asked = ExportRequest("orders", "owner", "r-1", sample.FIRST_DAY, utc("2026-09-03 00:00:00").date(), Format.CSV)
    snapshot = kind.take_snapshot(asked)
    assert kind.shard_ids(asked) == [day.isoformat() for day in days(asked.first_day, asked.last_day)]
    shards = [kind.plan_shard(asked, snapshot, shard_id) for shard_id in kind.shard_ids(asked)]
    assert sum(shard.planned for shard in shards) == 3000
    digests = []
    for form in TimeForm:
        digest = hashlib.sha256()
        for shard in shards:
            digest.update(kind.read(shard, "", 2000, form, NONE).data)
        digests.append(digest.hexdigest()[:16])
    assert digests == SAMPLE_DIGESTS


def test_columns_of_other_charsets_and_collations_are_joined_as_utf8(mariadb_orders: OrdersDatabase) -> None:
    mariadb_orders.execute(
        "ALTER TABLE orders MODIFY sku varchar(32) CHARACTER SET latin1, MODIFY address text COLLATE utf8mb4_bin,"
        " MODIFY remark text COLLATE utf8mb4_unicode_ci, MODIFY customer_name varchar(64) CHARACTER SET gbk"
    )
    mariadb_orders.add(1, sku="caf\u00e9", address="路1号", remark="😀", customer_name="张三丰")
    block = read(OrdersKind())
    cells = lines(block)[0]
    assert (cells[5], cells[7], cells[8], cells[13]) == ("张三丰", "路1号", "caf\u00e9", "😀")
    assert block.replaced == ()


@pytest.mark.parametrize("empty", [None, 81])
def test_a_table_of_many_columns_is_one_row_of_text(postgres_orders: OrdersDatabase, empty: int | None) -> None:
    """empty: the number of a column that is NULL where the model allows none."""
    row = [statements._Cell(f"c{number}", required=f"c{number}" if number % 2 else "") for number in range(120)]
    values = ["" if number == empty else str(number) for number in range(120)]
    stored = ", ".join(f"{value or 'NULL::int'} AS c{number}" for number, value in enumerate(values))
    [(joined,)] = postgres_orders.execute(f"SELECT {statements._postgresql_row(row)} FROM (SELECT {stored}) AS t")
    assert joined.split(CELL.decode()) == values
