import pytest

from exports import contracts, formats
from exports.contracts import CellType, Format, TimeForm
from exports.errors import StepBroken
from exports.formats.base import Literal, Range
from tests.unit.formats_files import (
    Exported,
    block,
    columns,
    csv_field,
    csv_records,
    exported,
    keyed,
    numbered,
    parsed,
    specification,
)

TEXT = columns(CellType.TEXT)


def test_quotes_and_commas_are_quoted_as_rfc_4180_says():
    """H025"""
    assert csv_field('5" screen, black') == b'"5"" screen, black"'
    assert len(csv_records(TEXT, keyed('5" screen, black'))) == 1


def test_line_feeds_stay_inside_one_quoted_field():
    """H026"""
    data = exported(TEXT, keyed("a\nb\n\nc")).data
    assert data.endswith(b'1,"a\nb\n\nc"\r\n')
    assert parsed(data)[1] == ["1", "a\nb\n\nc"]


def test_a_file_starts_with_one_byte_order_mark_and_the_header():
    """H027"""
    data = exported(columns(CellType.TEXT), keyed("张三丰")).data
    assert data == b"\xef\xbb\xbf" + "编号,列0\r\n1,张三丰\r\n".encode()
    assert data.count(b"\xef\xbb\xbf") == 1


def test_utf_8_without_a_mark_is_a_choice():
    assert exported(TEXT, keyed("a"), charset="utf-8").data == "编号,列0\r\n1,a\r\n".encode()


def test_a_byte_order_mark_inside_a_cell_is_data():
    assert csv_field("a\ufeffb") == "a\ufeffb".encode()


def test_amounts_have_no_grouping_and_a_point():
    """H028"""
    data = exported(columns((CellType.MONEY, 2)), keyed("1234.50")).data
    assert data.decode("utf-8-sig").splitlines() == ["编号,列0", "1,1234.50"]


def test_a_strict_reader_gets_clean_names_and_equal_field_counts():
    """H029"""
    records = parsed(exported(columns(CellType.TEXT, CellType.MONEY), [["1", 'a,"\n', "1.00"], ["2", "", ""]]).data)
    assert records[0] == ["编号", "列0", "列1"]
    assert {len(record) for record in records} == {3}


def test_null_is_an_empty_field():
    """H030"""
    made_of = columns(CellType.DATETIME, CellType.TEXT, (CellType.DECIMAL, 2))
    assert csv_records(made_of, [["1", "", "", ""]]) == [b"1,,,"]


def test_the_header_can_be_english():
    assert exported(TEXT, [], header_language="en").data == b"\xef\xbb\xbfID,Column 0\r\n"


def test_gb18030_carries_every_character_without_a_mark():
    data = exported(TEXT, keyed("小林😀\ufffd,ñ"), charset="gb18030").data
    assert parsed(data, charset="gb18030") == [["编号", "列0"], ["1", "小林😀\ufffd,ñ"]]
    assert data.startswith("编".encode("gb18030"))


@pytest.mark.parametrize(("delimiter", "expected"), [(";", b'1;"a;b";a,b'), ("\t", b"1\ta;b\ta,b")])
def test_other_delimiters_are_quoted_and_commas_are_not(delimiter, expected):
    made_of = columns(CellType.TEXT, CellType.TEXT)
    assert csv_records(made_of, [["1", "a;b", "a,b"]], delimiter=delimiter) == [expected]


def test_an_empty_cell_in_a_single_column_is_still_a_record():
    assert exported(columns()[:1], [[""], ["7"]]).data.decode("utf-8-sig") == '编号\r\n""\r\n7\r\n'


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("路1\x00号", "路1\ufffd号"),
        ("货到\x0b付款", "货到\ufffd付款"),
        ("a\ufffeb\uffffc", "a\ufffdb\ufffdc"),
    ],
)
def test_what_xml_cannot_carry_is_replaced_and_told(given, shown):
    """H031, H032, H035"""
    made = exported(TEXT, keyed("fine", given))
    assert parsed(made.data)[2] == ["2", shown]
    assert made.warnings == [contracts.Warning("replaced_characters", count=1, keys=("2",))]


@pytest.mark.parametrize("wanted", list(Format))
def test_every_character_that_xml_cannot_carry_is_found_alone(wanted):
    """All that can stand in a block: its two separators cannot."""
    codes = [code for code in range(0x1E) if code not in (9, 10, 13)] + [0xFFFE, 0xFFFF]
    made = exported(TEXT, keyed(*[f"a{chr(code)}b" for code in codes]), format=wanted)
    assert made.warnings == [contracts.Warning("replaced_characters", count=29, keys=("1", "2", "3", "4", "5"))]
    for code in codes:
        assert exported(TEXT, keyed(f"a{chr(code)}b"), format=wanted).warnings[0].count == 1


def test_several_quoted_fields_stand_in_one_page():
    rows = [["1", "a,b", 'c"d"'], ["2", "e", "f\ng"], ["3", "h,", "i"]]
    assert parsed(exported(columns(CellType.TEXT, CellType.TEXT), rows).data)[1:] == rows


def test_warnings_count_cells_and_name_the_first_rows():
    made_of = columns(CellType.TEXT, CellType.TEXT)
    rows = [[str(number), "\x01\x02", "\x03" if number == 1 else "fine"] for number in range(1, 9)]
    assert exported(made_of, rows).warnings == [
        contracts.Warning("replaced_characters", count=9, keys=("1", "2", "3", "4", "5"))
    ]


def test_cells_that_the_kind_replaced_count_in_the_same_warning():
    page = formats.get(Format.CSV).encoder(specification(TEXT)).page(block(keyed("a\ufffd", "\x01"), replaced=("1",)))
    assert page.warnings == (contracts.Warning("replaced_characters", count=2, keys=("1", "2")),)


def test_crlf_stays_inside_quotes():
    """H033"""
    assert csv_field("甲\r\n乙") == '"甲\r\n乙"'.encode()


def test_characters_of_four_bytes_survive():
    """H034"""
    assert csv_field("小林😀").endswith(b"\xf0\x9f\x98\x80")


@pytest.mark.parametrize(
    "text",
    [
        "=cmd|' /C calc'!A0",
        "@SUM(A1:A2)",
        "+1+1",
        " =1+1",
        "\u3000＝1+1",
        "\ufeff=1",
        "\xa0@a",
        "\u200b-a",
        "＋1",
        "－1",
        "＠a",
        "-2+3",
        "--note",
        "-",
        "-1.",
        "-.5",
        " -5",
        "+8613900000000",
    ],
)
def test_text_that_may_be_a_formula_gets_an_apostrophe(text):
    """H036, H037, H039, H040"""
    assert csv_field(text) == b"'" + text.encode()


@pytest.mark.parametrize("lead", ["\t", "\n", "\r"])
def test_text_behind_a_leading_control_character_gets_an_apostrophe(lead):
    assert parsed(exported(TEXT, keyed(lead + "a")).data)[1][1] == "'" + lead + "a"


def test_text_behind_a_leading_nul_gets_an_apostrophe():
    assert csv_field("\x00a") == "'\ufffda".encode()


@pytest.mark.parametrize("text", ["-0.02", "-42", "a=1", "1-2", "#N/A", "é=", "ー", "《=》", "\ufffd=1"])
def test_other_text_is_left_alone(text):
    """H039"""
    assert csv_field(text) == text.encode()


@pytest.mark.parametrize(
    "kind", [CellType.TEXT, CellType.IDENTIFIER, CellType.ENUM, CellType.JSON, CellType.URL, CellType.UUID]
)
def test_every_text_like_column_is_guarded(kind):
    assert csv_field("=1", kind) == b"'=1"


@pytest.mark.parametrize("kind", [CellType.INTEGER, (CellType.MONEY, 2), (CellType.DECIMAL, 2), CellType.FLOAT])
def test_number_columns_are_never_guarded(kind):
    """H038"""
    assert csv_field("-42.00", kind) == b"-42.00"
    assert csv_field("-1e-07", kind) == b"-1e-07"


def test_the_first_column_is_guarded_like_any_other():
    made_of = columns(CellType.TEXT)[1:]
    assert exported(made_of, [["=1"], ["a"], ["=2"]]).data.decode("utf-8-sig") == "列0\r\n'=1\r\na\r\n'=2\r\n"


def test_the_guard_can_be_switched_off():
    assert csv_field("=1", formula_guard=False) == b"=1"


def test_a_guarded_field_is_quoted_around_its_apostrophe():
    assert csv_field('=1,"a"') == b'"\'=1,""a"""'


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (CellType.IDENTIFIER, "2026091400012345678"),
        (CellType.IDENTIFIER, "004500"),
        ((CellType.MONEY, 2), "0.00"),
        ((CellType.MONEY, 2), "100.00"),
        ((CellType.DECIMAL, 6), "3.456789"),
        ((CellType.DECIMAL, 4), "0.0010"),
        ((CellType.DECIMAL, 3), "-0.005"),
        (CellType.UUID, "7d1c2f60-1b7a-4c55-9e0e-2a6f5b3c9d10"),
        (CellType.BYTES, "4142"),
        (CellType.BOOLEAN, "true"),
        (CellType.BOOLEAN, "false"),
        (CellType.DATE, "1899-12-29"),
        (CellType.FLOAT, "1e-07"),
    ],
)
def test_values_stand_in_the_file_as_the_database_has_them(kind, text):
    """H042, H043, H045, H047, H050, H051, H058"""
    assert csv_field(text, kind) == text.encode()


def test_integers_stay_integers_beside_nulls():
    """H044"""
    assert csv_records(columns(CellType.INTEGER), keyed("3", "", "5")) == [b"1,3", b"2,", b"3,5"]


def test_json_is_quoted_json():
    """H049"""
    assert csv_field('{"gift": true, "名": "张"}', CellType.JSON) == '"{""gift"": true, ""名"": ""张""}"'.encode()


def test_long_text_is_whole():
    """H054"""
    assert csv_field("a" * 32_768) == b"a" * 32_768


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("2026-09-01 08:30:00+08", b"2026-09-01T08:30:00+08:00"),
        ("2026-09-01 08:30:00.123+08", b"2026-09-01T08:30:00.123+08:00"),
        ("2026-09-01 00:00:00+08", b"2026-09-01T00:00:00+08:00"),
        ("2026-09-01 00:00:00+05:30", b"2026-09-01T00:00:00+05:30"),
        ("2026-09-04 22:30:00-03", b"2026-09-04T22:30:00-03:00"),
        ("1900-01-01 00:00:00+08:05:43", b"1900-01-01T00:00:00+08:05:43"),
        ("", b""),
    ],
)
def test_times_are_iso_8601(given, shown):
    """H019, H021, H056, H057, H059"""
    assert csv_field(given, CellType.DATETIME) == shown


def test_the_two_offsets_of_a_clock_change_stand_in_one_page():
    """H023"""
    times = [
        "2026-11-01 01:30:00-04",
        "2026-11-01 01:30:00-05",
        "",
        "2026-11-01 23:30:00-05",
        "2026-11-01 01:00:00+05:30",
    ]
    assert csv_records(columns(CellType.DATETIME), keyed(*times)) == [
        b"1,2026-11-01T01:30:00-04:00",
        b"2,2026-11-01T01:30:00-05:00",
        b"3,",
        b"4,2026-11-01T23:30:00-05:00",
        b"5,2026-11-01T01:00:00+05:30",
    ]


def test_a_file_without_rows_is_mark_header_and_line_end():
    """H060"""
    assert exported(TEXT, []).data == b"\xef\xbb\xbf" + "编号,列0\r\n".encode()


def test_an_empty_block_is_an_empty_page():
    page = formats.get(Format.CSV).encoder(specification(TEXT)).page(block([]))
    assert (page.data, page.rows, page.warnings) == (b"", 0, ())


def test_segments_are_copied_whole_and_in_order():
    made = Exported(specification(TEXT), [[numbered(3), numbered(2, start=4)], [], [numbered(1, start=6)]])
    header, first, second = made.pieces
    assert isinstance(header, Literal)
    assert first == Range("segment-0", 0, len(made.bytes_of["segment-0"]))
    assert second == Range("segment-2", 0, len(made.bytes_of["segment-2"]))
    assert [record[0] for record in parsed(made.data)[1:]] == ["1", "2", "3", "4", "5", "6"]
    assert made.reads == []


def test_pages_of_any_size_give_the_same_bytes():
    rows = numbered(7)
    whole = Exported(specification(TEXT), [[rows]]).data
    assert Exported(specification(TEXT), [[rows[:1], rows[1:5]], [rows[5:]]]).data == whole


@pytest.mark.parametrize(
    "data", [b"1\x1fa\x1e2", b"1\x1fa\x1fb\x1e2\x1fa", b"1\x1fa", b"1\x1fa\x1e2\x1fb\x1e3\x1fc", b"1\x1fa\x1f2\x1fb"]
)
def test_a_block_whose_cells_do_not_fit_its_rows_is_refused(data):
    page = block(numbered(2))
    broken = type(page)(data=data, rows=2, last_key="2")
    for wanted in Format:
        with pytest.raises(StepBroken):
            formats.get(wanted).encoder(specification(TEXT, format=wanted)).page(broken)


def test_the_format_asks_for_times_as_text():
    made = formats.get(Format.CSV)
    assert (made.extension, made.content_type, made.time_form) == ("csv", "text/csv", TimeForm.TEXT)
