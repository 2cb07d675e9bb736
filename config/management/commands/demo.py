"""`manage.py demo`: the whole product on this machine, and one export through it."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.demo import run
from config.demo.place import DemoError
from config.demo.screen import Screen
from exports.management.arguments import number

_INTERRUPTED = 130


class Command(BaseCommand):
    help = (
        "Starts Valkey, the web process and all workers below one folder, makes sample orders once, exports them "
        "through the REST API and checks the file. Kill any of its processes: the export goes on."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django's own type; the children check their settings

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--rows", type=number(1, 5_000_000), help="orders to make (400,000; with --serve those that are there)"
        )
        parser.add_argument("--days", type=number(1, 366), default=30, help="days they are spread over")
        parser.add_argument("--format", choices=["csv", "xlsx"], default="csv")
        parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
        parser.add_argument("--storage", choices=["folder", "s3"], default="folder", help="where finished files go")
        parser.add_argument("--port", type=number(0, 65_535), default=8000, help="of the web process; 0: a free one")
        parser.add_argument("--data", type=Path, default=Path("demo-data"), help="folder of everything it makes")
        parser.add_argument("--serve", action="store_true", help="submit nothing and stay up until interrupted")
        parser.add_argument("--json", action="store_true", help="one JSON object as the last line of stdout")

    def handle(self, *_: Any, **given: Any) -> None:
        given["rows"] = given["rows"] or run.rows_by_default(given)
        options = run.Options(**{name: given[name] for name in run.Options.__slots__})
        # With --json, stdout is for the one object.
        screen = Screen(sys.stderr if given["json"] else sys.stdout)
        try:
            if given["serve"]:
                _serve(options, screen, as_json=given["json"])
            else:
                _export(options, screen, as_json=given["json"])
        except DemoError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            raise SystemExit(0 if given["serve"] else _INTERRUPTED) from None


def _export(options: run.Options, screen: Screen, *, as_json: bool) -> None:
    with run.started(options, screen) as running:
        _say_ops_page(running, screen)
        result = run.export(running, options, screen)
    if as_json:
        _tell(result.as_dict())
        return
    screen.line("")
    screen.line(f"file    {result.file}")
    screen.line(f"rows    {result.rows:,}, each once, in order of day and id")
    screen.line(f"time    {result.seconds:.1f} s from the POST to succeeded, {result.rows_per_second:,} rows/s")


def _serve(options: run.Options, screen: Screen, *, as_json: bool) -> None:
    with run.started(options, screen) as running:
        if as_json:
            operator, password = running.ops_login
            _tell(
                {
                    "url": running.url,
                    "data": str(running.place.root),
                    "environment": running.environment_file,
                    "operator": operator,
                    "password": password,
                }
            )
        else:
            _say_what_to_open(running, screen)
        run.serve(running)


def _say_what_to_open(running: run.Running, screen: Screen) -> None:
    first_day, last_day = running.wanted.first_day, running.wanted.last_day
    body = f'{{"requestId": "1", "from": "{first_day}", "to": "{last_day}", "format": "csv"}}'
    screen.line(f"front end    {running.url}/demo/")
    screen.line(f"my exports   {running.url}/api/orders/export")
    screen.line(f"API          {running.url}/api/docs/")
    screen.line(f"metrics      {running.url}/metrics")
    screen.line(f"submit       curl -H 'Content-Type: application/json' -d '{body}' {running.url}/api/orders/export")
    screen.line(f"commands     . {running.environment_file} && {sys.executable} manage.py export_list")
    _say_ops_page(running, screen)
    screen.line("Ctrl-C stops everything.")


def _say_ops_page(running: run.Running, screen: Screen) -> None:
    name, password = running.ops_login
    screen.line(f"ops page     {running.url}/ops/   user {name}, password {password}")


def _tell(result: dict[str, Any]) -> None:
    print(json.dumps(result, ensure_ascii=False), flush=True)  # noqa: T201  # a command's answer
