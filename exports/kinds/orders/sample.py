"""Sample data: a made-up `orders` table for the demo, the bench and the tests. Never used by an export.

The same arguments always give the same rows. Days are those of the business zone and uneven (weekends,
two promotion days in each 30), hours follow a daily curve, about 2 % of the rows are created earlier than
their id says, and names, addresses and remarks hold Chinese text, commas, quotes, line breaks, ampersands
and angle brackets. Nobody's data is in it.
"""

import datetime as dt
import itertools
import random
import zoneinfo
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from exports.kinds.orders.windows import day_start

FIRST_DAY = dt.date(2026, 9, 1)
FIRST_ID = 10_000_000
BATCH = 5000
WIDTH = 14
SURNAMES = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗"
GIVEN = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉萍红鑫宇浩"
CITIES = [
    "北京市朝阳区",
    "上海市浦东新区",
    "广州市天河区",
    "深圳市南山区",
    "杭州市西湖区",
    "成都市武侯区",
    "武汉市洪山区",
    "西安市雁塔区",
    "南京市鼓楼区",
    "重庆市渝中区",
]
STREETS = ["建国路", "世纪大道", "体育西路", "科技园路", "文三路", "人民南路", "珞喻路", "长安街"]
STATUSES = ["created", "paid", "shipped", "completed", "refunded", "cancelled"]
STATUS_WEIGHTS = (6, 18, 20, 46, 4, 6)
REMARKS = (
    "请工作日送货",
    "放门口即可",
    "发票抬头：个人",
    "加急，谢谢!",
    "赠品 <袋子> & 贺卡",
    'gift note: "happy birthday"',
    "两件合并\n分开包装",
    "call before delivery, please",
)
HOURS = (2, 1, 1, 1, 1, 2, 3, 5, 7, 9, 11, 11, 10, 9, 9, 9, 9, 9, 10, 12, 14, 13, 9, 5)
PROMOTIONS = {8: 3.0, 17: 2.2}

Row = tuple[Any, ...]

_TABLE = """CREATE TABLE orders (
  id bigint PRIMARY KEY, order_no varchar(32) NOT NULL, created_at {time} NOT NULL, paid_at {time} NULL,
  status varchar(16) NOT NULL, customer_name varchar(64) NOT NULL, phone varchar(20) NOT NULL,
  address text NOT NULL, sku varchar(32) NOT NULL, quantity integer NOT NULL,
  unit_price numeric(12,2) NOT NULL, total numeric(12,2) NOT NULL,
  currency varchar(3) NOT NULL, remark text NULL)"""
_INDEX = "CREATE INDEX orders_created_at_id ON orders (created_at, id)"
_TIMES = {"postgresql": "timestamptz", "sqlite": "datetime", "mysql": "datetime(6)"}


def statements(vendor: str) -> list[str]:
    """SQL that makes the empty table. vendor: as Django names it."""
    return ["DROP TABLE IF EXISTS orders", _TABLE.format(time=_TIMES[vendor]), _INDEX]


def generate(
    rows: int, *, seed: int = 1, days: int = 30, first_day: dt.date = FIRST_DAY, zone: str = "Asia/Shanghai"
) -> Iterator[Row]:
    """Rows in the order of the table's columns, times UTC."""
    rng = random.Random(seed)  # noqa: S311  # sample data
    order_id = FIRST_ID
    place = zoneinfo.ZoneInfo(zone)
    for number, count in enumerate(day_counts(rows, days=days, first_day=first_day)):
        start = day_start(first_day + dt.timedelta(days=number), zone=place)
        hours = rng.choices(range(24), HOURS, k=count)
        for ms in sorted(hour * 3_600_000 + rng.randrange(3_600_000) for hour in hours):
            order_id += rng.choice((1, 1, 1, 2, 3))
            late = rng.random() < 0.02
            created = start + dt.timedelta(milliseconds=rng.randrange(ms + 1) if late else ms)
            yield _row(rng, order_id, created=created)


def day_counts(rows: int, *, days: int, first_day: dt.date) -> list[int]:
    """Rows of each day: more at weekends, a slow rise, two promotion days."""
    weights = [
        (1.0 + 0.01 * day + (0.35 if (first_day + dt.timedelta(days=day)).weekday() >= 5 else 0))
        * PROMOTIONS.get(day, 1)
        for day in range(days)
    ]
    counts = [int(weight * rows / sum(weights)) for weight in weights]
    counts[-1] += rows - sum(counts)
    return counts


def insert(cursor: Any, rows: Iterable[Row], *, vendor: str) -> None:
    """Insert through a DB-API cursor with the right to write; the caller commits."""
    if vendor == "postgresql":
        with cursor.copy("COPY orders FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        return
    mark = "?" if vendor == "sqlite" else "%s"
    marks = ", ".join([mark] * WIDTH)
    source = map(_plain, rows)
    while batch := list(itertools.islice(source, BATCH)):
        cursor.executemany(f"INSERT INTO orders VALUES ({marks})", batch)  # noqa: S608  # only marks are put in


def analyze(cursor: Any, *, vendor: str) -> None:
    """Let the planner know the rows, as a table in use would."""
    cursor.execute("ANALYZE TABLE orders" if vendor == "mysql" else "ANALYZE orders")


def _row(rng: random.Random, order_id: int, *, created: dt.datetime) -> Row:
    status = rng.choices(STATUSES, STATUS_WEIGHTS)[0]
    unpaid = status in ("created", "cancelled")
    quantity = rng.choices((1, 2, 3, 5, 10), (70, 16, 8, 4, 2))[0]
    price = Decimal(rng.randrange(190, 400_000)) / 100
    return (
        order_id,
        f"SO{created:%Y%m%d}{order_id:010d}",
        created,
        None if unpaid else created + dt.timedelta(seconds=rng.randrange(5, 1800)),
        status,
        rng.choice(SURNAMES) + rng.choice(GIVEN) + (rng.choice(GIVEN) if rng.random() < 0.7 else ""),
        "1" + rng.choice("3578") + str(rng.randrange(10**8, 10**9)),
        _address(rng),
        f"SKU-{rng.randrange(1, 5000):05d}",
        quantity,
        price,
        price * quantity,
        "CNY" if rng.random() < 0.97 else "USD",
        rng.choice(REMARKS) if rng.random() < 0.2 else None,
    )


def _address(rng: random.Random) -> str:
    street = f"{rng.choice(CITIES)}{rng.choice(STREETS)}{rng.randrange(1, 999)}号"
    extra = rng.random()
    if extra < 0.25:
        return f"{street}, {rng.randrange(1, 30)}栋{rng.randrange(101, 3302)}室"
    if extra < 0.32:
        return f'{street} "{rng.choice(GIVEN)}苑小区" {rng.randrange(1, 12)}单元'
    if extra < 0.36:
        return f"{street}\n{rng.randrange(1, 40)}层 A&B座"
    return street


def _plain(row: Row) -> Row:
    """For databases without a time zone of their own: UTC text, amounts as text."""
    return tuple(
        value.strftime("%Y-%m-%d %H:%M:%S.%f")
        if isinstance(value, dt.datetime)
        else str(value)
        if isinstance(value, Decimal)
        else value
        for value in row
    )
