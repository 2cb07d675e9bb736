import datetime as dt
import io
import zipfile

import openpyxl
import pytest

from exports import contracts, formats
from exports.contracts import CellType, Format, TimeForm
from tests.unit.formats_files import (
    block,
    columns,
    exported,
    keyed,
    serial,
    sheet_xml,
    specification,
    values_by_each_reader,
    workbook,
    xlsx_cells,
)

TEXT = columns(CellType.TEXT)


def xlsx(made_of, rows, **changes):
    return exported(made_of, rows, format=Format.XLSX, **changes)


def only(kind, value):
    """The one cell of a file with one value."""
    return xlsx_cells(kind, value)[0]


def local(text):
    return serial(dt.datetime.fromisoformat(text))


def test_null_is_no_value():
    """H030"""
    made_of = columns(CellType.DATETIME, CellType.TEXT, (CellType.DECIMAL, 2), CellType.BOOLEAN, CellType.DATE)
    data = xlsx(made_of, [["1", "", "", "", "", ""]]).data
    for reader, sheets in values_by_each_reader(data).items():
        assert sheets[0][1][0] == 1, reader
        assert not any(sheets[0][1][1:]), reader
    assert sheet_xml(data).count("<c/>") == 5


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("路1\x00号", "路1\ufffd号"),
        ("货到\x0b付款", "货到\ufffd付款"),
        ("a\ufffeb\uffffc", "a\ufffdb\ufffdc"),
        ("小林😀", "小林😀"),
        ("a\ufeffb", "a\ufeffb"),
    ],
)
def test_characters_are_those_of_the_csv(given, shown):
    """H031, H032, H034, H035"""
    made = xlsx(TEXT, keyed(given))
    for reader, sheets in values_by_each_reader(made.data).items():
        assert sheets[0][1][1] == shown, reader
    assert made.warnings == exported(TEXT, keyed(given)).warnings


def test_line_breaks_are_line_feeds():
    """H033"""
    made = xlsx(TEXT, keyed("甲\r\n乙\r丙\n丁"))
    assert "_x000D_" not in sheet_xml(made.data)
    for reader, sheets in values_by_each_reader(made.data).items():
        assert sheets[0][1][1] == "甲\n乙\n丙\n丁", reader


@pytest.mark.parametrize(
    "text", ["=cmd|' /C calc'!A0", "@SUM(A1:A2)", "+1+1", " =1+1", "=缺货", "+8613900000000", "-2+3"]
)
def test_text_that_looks_like_a_formula_is_unchanged_text(text):
    """H036, H037, H040, H041"""
    made = xlsx(TEXT, keyed(text))
    assert "<f>" not in sheet_xml(made.data)
    cell = only(CellType.TEXT, text)
    assert (cell.data_type, cell.value, cell.number_format) == ("s", text, "@")


@pytest.mark.parametrize("text", ["a & b <袋子> \"q\" 'a'", "  spaces  ", "&amp;", "]]>", "\t", "</row><row>"])
def test_markup_and_white_space_come_back_as_they_were(text):
    for reader, sheets in values_by_each_reader(xlsx(TEXT, keyed(text)).data).items():
        assert sheets[0][1][1] == text, reader


@pytest.mark.parametrize("text", ["_x0041_", "_x0041_x0042_", "__x00e9__", "_x005F_", "_x000D_"])
def test_text_that_looks_like_a_character_code_is_kept(text):
    made = xlsx(TEXT, keyed(text))
    assert values_by_each_reader(made.data)["calamine"][0][1][1] == text
    assert openpyxl.utils.escape.unescape(only(CellType.TEXT, text).value) == text


def test_text_that_is_no_whole_character_code_is_not_escaped():
    assert "_x005F_" not in sheet_xml(xlsx(TEXT, keyed("_x00G1_", "_x00041_", "x0041_", "_X0041_")).data)


def test_numbers_are_numbers_and_negative_ones_too():
    """H038, H044"""
    cells = xlsx_cells((CellType.MONEY, 2), "-42.00", "", "5.00")
    assert [(cell.data_type, cell.value) for cell in cells] == [("n", -42), ("n", None), ("n", 5)]
    cells = xlsx_cells(CellType.INTEGER, "3", "", "5")
    assert [(cell.data_type, cell.value, cell.number_format) for cell in cells[::2]] == [("n", 3, "0"), ("n", 5, "0")]


@pytest.mark.parametrize("kind", [CellType.INTEGER, (CellType.MONEY, 2), (CellType.DECIMAL, 3), CellType.FLOAT])
def test_what_is_no_number_is_text_also_in_a_number_column(kind):
    """SQLite keeps any text in any column; in a number's cell it makes a workbook that Excel must repair."""
    cells = xlsx_cells(kind, "12", "abc", "1-2", "-", "")
    assert [(cell.data_type, cell.value) for cell in cells] == [
        ("n", 12),
        ("s", "abc"),
        ("s", "1-2"),
        ("s", "-"),
        ("n", None),
    ]


@pytest.mark.parametrize("text", ["2026091400012345678", "004500", "000123", "12"])
def test_identifiers_are_text(text):
    """H042, H043"""
    cell = only(CellType.IDENTIFIER, text)
    assert (cell.data_type, cell.value) == ("s", text)


@pytest.mark.parametrize(
    ("kind", "text", "digits"),
    [
        (CellType.INTEGER, "123456789012345", 15),
        (CellType.INTEGER, "-123456789012345", 15),
        (CellType.INTEGER, "1234567890123456", 16),
        (CellType.INTEGER, "-1234567890123456", 16),
        ((CellType.DECIMAL, 2), "1234567890123.45", 15),
        ((CellType.DECIMAL, 3), "1234567890123.456", 16),
        ((CellType.DECIMAL, 17), "0.00123456789012345", 15),
        ((CellType.DECIMAL, 17), "0.01234567890123456", 16),
        (CellType.FLOAT, "0.30000000000000004", 17),
        (CellType.FLOAT, "1.23456789012345e-07", 15),
    ],
)
def test_a_number_of_more_than_15_significant_digits_is_text(kind, text, digits):
    cell = only(kind, text)
    assert (cell.data_type, cell.value) == (
        ("s", text) if digits > 15 else ("n", pytest.approx(float(text), rel=1e-15))
    )


def test_a_long_number_leaves_its_neighbours_numbers():
    cells = xlsx_cells(CellType.INTEGER, "1", "1234567890123456", "", "3")
    assert [cell.value for cell in cells] == [1, "1234567890123456", None, 3]


@pytest.mark.parametrize(
    ("kind", "text", "value", "number_format"),
    [
        ((CellType.MONEY, 2), "0.00", 0, "0.00"),
        ((CellType.MONEY, 2), "100.00", 100, "0.00"),
        ((CellType.DECIMAL, 6), "3.456789", 3.456789, "0.000000"),
        ((CellType.DECIMAL, 4), "0.0010", 0.001, "0.0000"),
        ((CellType.DECIMAL, 3), "-0.005", -0.005, "0.000"),
        ((CellType.DECIMAL, 0), "7", 7, "0"),
        (CellType.FLOAT, "1e-07", 1e-07, "General"),
    ],
)
def test_decimals_are_numbers_with_the_scale_as_format(kind, text, value, number_format):
    """H045, H047"""
    cell = only(kind, text)
    assert (cell.data_type, cell.value, cell.number_format) == ("n", value, number_format)


def test_amounts_can_be_summed():
    """H046"""
    cells = xlsx_cells((CellType.MONEY, 2), "10.10", "20.20", "30.30")
    assert round(sum(cell.value for cell in cells), 2) == 60.60
    assert {cell.number_format for cell in cells} == {"0.00"}


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (CellType.JSON, '{"gift": true, "名": "张"}'),
        (CellType.JSON, '[1, null, "a"]'),
        (CellType.UUID, "7d1c2f60-1b7a-4c55-9e0e-2a6f5b3c9d10"),
        (CellType.BYTES, "4142"),
        (CellType.ENUM, "已付款"),
    ],
)
def test_other_types_are_text(kind, text):
    """H049, H050"""
    cell = only(kind, text)
    assert (cell.data_type, cell.value) == ("s", text)


def test_booleans_are_booleans():
    """H051"""
    cells = xlsx_cells(CellType.BOOLEAN, "true", "false", "")
    assert [(cell.data_type, cell.value) for cell in cells[:2]] == [("b", True), ("b", False)]
    assert cells[2].value is None


def test_long_text_is_cut_and_told():
    """H054"""
    made = xlsx(TEXT, keyed("a" * 32_767, "b" * 32_768, "&" * 40_000))
    values = [row[1] for row in values_by_each_reader(made.data)["calamine"][0][1:]]
    assert values == ["a" * 32_767, "b" * 32_767, "&" * 32_767]
    assert made.warnings == [contracts.Warning("cut_cells", count=2, keys=("2", "3"))]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("张" * 32_767, "张" * 32_767),
        ("😀" * 16_384, "😀" * 16_383),
        ("a" * 32_766 + "😀", "a" * 32_766),
        ("\r\n" * 32_767, "\n" * 32_767),
        ("a" * 32_767 + "\r\n", "a" * 32_767),
        ("\x01" * 32_768, "\ufffd" * 32_767),
    ],
)
def test_text_is_cut_between_characters_and_counted_as_excel_counts(given, shown):
    cell = only(CellType.TEXT, given)
    assert cell.value == shown


def test_urls_are_text_without_links():
    """H055"""
    made = xlsx(columns(CellType.URL), keyed(*["https://x.example/1"] * 65_531))
    xml = sheet_xml(made.data)
    assert xml.count("https://x.example/1</t>") == 65_531
    assert "hyperlink" not in xml
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        assert not [name for name in archive.namelist() if "sheet1.xml.rels" in name]


@pytest.mark.parametrize(
    "text", ["2026-09-01 08:30:00", "2026-09-01 00:00:00", "1900-03-01 00:00:00", "9999-12-31 23:59:59"]
)
def test_times_are_date_time_cells(text):
    """H021, H056, H057"""
    cell = only(CellType.DATETIME, local(text))
    assert cell.is_date
    assert (cell.value, cell.number_format) == (dt.datetime.fromisoformat(text), "yyyy-mm-dd hh:mm:ss")


def test_times_that_a_spreadsheet_cannot_hold_are_iso_text():
    """H058"""
    cells = xlsx_cells(
        CellType.DATETIME, "1899-12-29 10:00:00+08:05:43", local("2026-09-01 08:30:00"), "", "1900-02-28 00:00:00+08"
    )
    assert [cell.value for cell in cells] == [
        "1899-12-29T10:00:00+08:05:43",
        dt.datetime.fromisoformat("2026-09-01T08:30:00"),
        None,
        "1900-02-28T00:00:00+08:00",
    ]


@pytest.mark.parametrize("text", ["1899-12-29", "1900-02-28", "0001-01-01", "10000-01-01"])
def test_dates_that_a_spreadsheet_cannot_hold_are_text(text):
    """H058"""
    assert only(CellType.DATE, text).value == text


@pytest.mark.parametrize("text", ["1900-03-01", "2026-09-01", "9999-12-31"])
def test_dates_are_date_cells(text):
    cell = only(CellType.DATE, text)
    assert cell.is_date
    assert (cell.value, cell.number_format) == (dt.datetime.fromisoformat(text), "yyyy-mm-dd")


def test_a_missing_time_leaves_its_neighbours():
    """H059"""
    cells = xlsx_cells(CellType.DATETIME, local("2026-09-01 08:30:00"), "", local("2026-09-02 08:30:00"))
    assert [cell.value is None for cell in cells] == [False, True, False]


def test_a_file_without_rows_has_one_sheet_with_the_header():
    """H060"""
    for reader, sheets in values_by_each_reader(xlsx(TEXT, []).data).items():
        assert sheets == [[["编号", "列0"]]], reader


def test_the_header_is_bold_frozen_and_filtered_over_all_rows():
    book = workbook(columns(CellType.TEXT, CellType.DATE), [["1", "a", "2026-09-01"]] * 5)
    sheet = book.worksheets[0]
    assert [cell.value for cell in sheet[1]] == ["编号", "列0", "列1"]
    assert all(cell.font.bold for cell in sheet[1])
    assert not any(cell.font.bold for cell in sheet[2])
    assert (sheet.freeze_panes, sheet.auto_filter.ref, sheet.dimensions) == ("A2", "A1:C6", "A1:C6")
    assert sheet.column_dimensions["A"].width == 16


def test_the_header_can_be_english():
    assert [cell.value for cell in workbook(TEXT, [], header_language="en").worksheets[0][1]] == ["ID", "Column 0"]


def test_columns_of_every_type_have_their_own_formats():
    kinds = [
        CellType.DATETIME,
        (CellType.MONEY, 2),
        CellType.DATE,
        (CellType.DECIMAL, 4),
        CellType.TEXT,
        (CellType.MONEY, 2),
    ]
    row = ["1", "45000.5", "1.00", "2026-09-01", "1.0000", "a", "2.00"]
    cells = workbook(columns(*kinds), [row]).worksheets[0][2]
    assert [cell.number_format for cell in cells] == [
        "0",
        "yyyy-mm-dd hh:mm:ss",
        "0.00",
        "yyyy-mm-dd",
        "0.0000",
        "@",
        "0.00",
    ]


def test_only_as_of_dates_the_file_and_nobody_is_named():
    made = xlsx(TEXT, keyed("a"))
    with zipfile.ZipFile(io.BytesIO(made.data)) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        properties = archive.read("docProps/core.xml").decode()
    assert properties.count("2026-10-01T00:00:00Z") == 2
    assert "creator" not in properties
    assert "lastModifiedBy" not in properties
    book = openpyxl.load_workbook(io.BytesIO(made.data))
    assert book.properties.created == dt.datetime.fromisoformat("2026-10-01T00:00:00")


def test_assembling_twice_gives_the_same_bytes():
    rows = keyed("a", "=1", "张")
    assert xlsx(TEXT, rows).data == xlsx(TEXT, rows).data


def test_an_empty_block_is_an_empty_page():
    page = formats.get(Format.XLSX).encoder(specification(TEXT, format=Format.XLSX)).page(block([]))
    assert (page.data, page.rows, page.warnings) == (b"", 0, ())


def test_a_warning_names_the_key_and_not_its_markup():
    made_of = columns(CellType.TEXT, CellType.TEXT)[1:]
    assert xlsx(made_of, [["a&b", "\x01"]]).warnings == [
        contracts.Warning("replaced_characters", count=1, keys=("a&b",))
    ]


def test_the_format_asks_for_times_as_serials():
    made = formats.get(Format.XLSX)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    assert (made.extension, made.content_type, made.time_form) == ("xlsx", kind, TimeForm.SERIAL)
