"""The parts of the demo that need no process: what it checks, shows and makes."""

import datetime as dt
import zipfile

import pytest

from config import env
from config.demo import file_check, orders
from config.demo.place import DemoError, Place, write_private
from config.demo.screen import progress_text

HEADER = "订单ID,订单号,下单时间\r\n"


def csv_file(tmp_path, *lines):
    path = tmp_path / "orders.csv"
    path.write_text(HEADER + "".join(f"{line}\r\n" for line in lines), "utf-8-sig")
    return path


def workbook(tmp_path, *sheets):
    path = tmp_path / "orders.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        for number, rows in enumerate(sheets, 1):
            lines = "".join(
                f'<row><c><v>{key}</v></c><c t="s"><v>x</v></c><c s="2"><v>{day}</v></c></row>' for key, day in rows
            )
            archive.writestr(f"xl/worksheets/sheet{number}.xml", f"<sheetData><row><c/></row>{lines}</sheetData>")
    return path


def test_rows_of_a_csv_are_counted_across_line_breaks_in_cells(tmp_path):
    path = csv_file(
        tmp_path, '7,a,2026-09-01 10:00:00,"two\nlines"', "9,b,2026-09-01 11:00:00,x", "3,c,2026-09-02 00:00:00,y"
    )
    assert file_check.count_rows(path) == 3


@pytest.mark.parametrize(
    "second",
    ["7,b,2026-09-01 11:00:00", "6,b,2026-09-01 11:00:00", "8,b,2026-08-31 11:00:00"],
    ids=["twice", "id", "day"],
)
def test_an_order_out_of_place_is_refused(tmp_path, second):
    with pytest.raises(DemoError, match="stands behind 7 of 2026-09-01"):
        file_check.count_rows(csv_file(tmp_path, "7,a,2026-09-01 10:00:00", second))


def test_rows_of_all_sheets_of_a_workbook_are_counted_in_the_order_of_the_sheets(tmp_path):
    sheets = [[(number, 46266.5)] for number in range(1, 12)]
    assert file_check.count_rows(workbook(tmp_path, *sheets)) == 11


def test_an_order_that_stands_on_two_sheets_is_refused(tmp_path):
    with pytest.raises(DemoError, match="the order 7 of 2026-09-01 stands behind 7 of 2026-09-01"):
        file_check.count_rows(workbook(tmp_path, [(7, 46266.5)], [(7, 46266.5)]))


def test_the_sample_days_start_on_the_first_of_september_once_they_are_past():
    wanted = orders.wanted(rows=10, days=30, today=dt.date(2026, 11, 30))
    assert (wanted.first_day, wanted.last_day) == ("2026-09-01", "2026-09-30")


def test_the_sample_days_are_never_in_the_future():
    wanted = orders.wanted(rows=10, days=30, today=dt.date(2026, 3, 10))
    assert (wanted.first_day, wanted.last_day) == ("2026-02-07", "2026-03-08")


@pytest.mark.parametrize(
    ("task", "text"),
    [
        (("queued", None, 0, None, None), "[..............................]   0%  queued     counting"),
        (("running", "fetch", 500, 2000, None), "[#######.......................]  25%  fetch      500 of 2,000 rows"),
        (("succeeded", "upload", 0, 0, "now"), "[##############################] 100%  succeeded  0 of 0 rows"),
    ],
)
def test_progress_is_one_line(task, text):
    names = ("state", "phase", "processed", "total", "finishedAt")
    assert progress_text(dict(zip(names, task, strict=True))) == text


def test_passwords_are_made_once_and_only_their_owner_reads_them(tmp_path):
    place = Place(tmp_path / "demo")
    made = place.passwords()
    assert Place(tmp_path / "demo").passwords() == made
    assert (tmp_path / "demo" / "passwords.json").stat().st_mode & 0o777 == 0o600
    assert len({made.secret_key, made.valkey, made.owner, made.reader}) == 4


def test_a_child_gets_nothing_that_configures_this_process(monkeypatch):
    given = {"EXPORTS_PAGE_ROWS": "7", "DATABASE_URL": "sqlite:///mine", "DJANGO_SETTINGS_MODULE": "mine", "LANG": "C"}
    for name, text in given.items():
        monkeypatch.setenv(name, text)
    child = env.for_child({"EXPORTS_AUTH": "none"})
    assert {name: child.get(name) for name in (*given, "EXPORTS_AUTH")} == {
        **dict.fromkeys(given),
        "LANG": "C",
        "EXPORTS_AUTH": "none",
    }


def test_a_private_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "secret"
    path.write_text("longer than before")
    write_private(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_serves_one_demo(tmp_path, monkeypatch):
    monkeypatch.setattr("config.demo.place._LOCK_WAIT_S", 0.0)
    place = Place(tmp_path)
    with place.locked(), pytest.raises(DemoError, match="another demo uses"), Place(tmp_path).locked():
        pass
