"""Make the sample orders in a database of your own.

    python -m tests.bench.make_orders --rows 400000 --sqlite orders.sqlite3
    python -m tests.bench.make_orders --rows 400000 --postgres "host=127.0.0.1 dbname=orders"
    python -m tests.bench.make_orders --rows 400000 --mysql "host=127.0.0.1 user=root database=orders"

An `orders` table that is there already is replaced. The same rows, seed and days give the same data.
"""

import argparse
import datetime as dt
import os
import sqlite3
from typing import Any

import django


def main() -> None:
    args = _arguments()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    from exports.kinds.orders import sample  # needs settings

    for vendor, connection in _targets(args):
        cursor = connection.cursor()
        for sql in sample.statements(vendor):
            cursor.execute(sql)
        rows = sample.generate(args.rows, seed=args.seed, days=args.days, first_day=args.first_day)
        sample.insert(cursor, rows, vendor=vendor)
        sample.analyze(cursor, vendor=vendor)
        connection.commit()
        connection.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--first-day", type=dt.date.fromisoformat, default=dt.date(2026, 9, 1))
    parser.add_argument("--sqlite")
    parser.add_argument("--postgres")
    parser.add_argument("--mysql")
    return parser.parse_args()


def _targets(args: argparse.Namespace) -> list[tuple[str, Any]]:
    """Pairs of vendor and open connection."""
    found: list[tuple[str, Any]] = []
    if args.sqlite:
        found.append(("sqlite", sqlite3.connect(args.sqlite)))
    if args.postgres:
        import psycopg

        found.append(("postgresql", psycopg.connect(args.postgres)))
    if args.mysql:
        import pymysql

        options: dict[str, Any] = dict(part.split("=", 1) for part in args.mysql.split())
        options["port"] = int(options.get("port", 3306))
        found.append(("mysql", pymysql.connect(charset="utf8mb4", **options)))
    return found


if __name__ == "__main__":
    main()
