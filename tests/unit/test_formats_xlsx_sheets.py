import io
import struct
import zipfile
import zlib

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exports import formats
from exports.contracts import CellType, Format, PageRecord
from exports.errors import StepBroken
from exports.formats.base import Literal, Range, SegmentPages
from exports.formats.deflate import crc32, crc32_joined, packed, stored, unpacked
from exports.formats.sheet_names import sheet_names
from tests.unit.formats_files import (
    AS_OF,
    Exported,
    columns,
    in_pages,
    numbered,
    sheet_xml,
    specification,
    values_by_each_reader,
)

GIB = 1 << 30
TEXT = columns(CellType.TEXT)


def in_sheets(*segments, sheet_rows=11, **changes):
    return Exported(specification(TEXT, format=Format.XLSX, sheet_rows=sheet_rows, **changes), segments)


def keys_by_sheet(data):
    sheets = values_by_each_reader(data)
    assert sheets["openpyxl"] == sheets["openpyxl read-only"] == sheets["calamine"]
    assert {tuple(sheet[0]) for sheet in sheets["openpyxl"]} == {("编号", "列0")}
    return [[row[0] for row in sheet[1:]] for sheet in sheets["openpyxl"]]


def test_rows_beyond_a_sheet_go_on_to_the_next():
    """H052"""
    made = in_sheets(in_pages(numbered(13), 6), in_pages(numbered(12, start=14), 6))
    assert keys_by_sheet(made.data) == [list(range(1, 11)), list(range(11, 21)), list(range(21, 26))]
    assert openpyxl.load_workbook(io.BytesIO(made.data)).sheetnames == ["订单", "订单_2", "订单_3"]


def test_only_pages_that_cross_an_edge_are_read():
    made = in_sheets(in_pages(numbered(13), 6), in_pages(numbered(12, start=14), 6))
    assert [place.segment for place in made.reads] == ["segment-0", "segment-1"]
    assert [unpacked(made._bytes(place)).count(b"</row>") for place in made.reads] == [6, 6]


def test_a_page_that_ends_at_the_edge_is_not_cut():
    made = in_sheets(in_pages(numbered(20), 5))
    assert keys_by_sheet(made.data) == [list(range(1, 11)), list(range(11, 21))]
    assert made.reads == []


def test_a_page_may_cross_several_sheets():
    made = in_sheets([numbered(10)], sheet_rows=4)
    assert keys_by_sheet(made.data) == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10]]
    assert len(made.reads) == 1


def test_a_sheet_that_is_exactly_full_has_no_empty_follower():
    assert keys_by_sheet(in_sheets([numbered(10)]).data) == [list(range(1, 11))]


def test_every_sheet_states_its_real_range():
    made = in_sheets(in_pages(numbered(13), 6))
    for number, whole in ((1, "A1:B11"), (2, "A1:B4")):
        assert f'<dimension ref="{whole}">' in sheet_xml(made.data, number=number)
        assert f'<autoFilter ref="{whole}"' in sheet_xml(made.data, number=number)


def test_neighbouring_pages_are_one_range():
    made = in_sheets(in_pages(numbered(9), 3), in_pages(numbered(1, start=10), 3))
    ranges = [piece for piece in made.pieces if not isinstance(piece, Literal)]
    assert [(place.segment, place.offset, place.length) for place in ranges] == [
        (name, 0, len(data)) for name, data in made.bytes_of.items()
    ]


def test_a_page_without_rows_leaves_no_bytes():
    pages = [page_of(rows, length=5, raw_length=10) for rows in (3, 0, 3)]
    spec = specification(TEXT, format=Format.XLSX)
    pieces = formats.get(Format.XLSX).assemble(spec, [SegmentPages("s", pages)], AS_OF, lambda place: b"")
    assert [piece for piece in pieces if isinstance(piece, Range)] == [Range("s", 0, 5), Range("s", 10, 5)]


def test_the_bytes_of_a_sheet_do_not_depend_on_page_edges():
    rows = numbered(25)
    first = in_sheets(in_pages(rows, 25))
    second = in_sheets(in_pages(rows[:7], 3), in_pages(rows[7:], 4))
    for number in (1, 2, 3):
        assert sheet_xml(first.data, number=number) == sheet_xml(second.data, number=number)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(st.integers(1, 9), max_size=4), max_size=4), st.integers(2, 12))
def test_every_row_stands_once_and_in_order_wherever_the_edges_fall(sizes, sheet_rows):
    segments, start = [], 1
    for pages in sizes:
        segments.append([numbered(size, start=start + sum(pages[:place])) for place, size in enumerate(pages)])
        start += sum(pages)
    sheets = keys_by_sheet(in_sheets(*segments, sheet_rows=sheet_rows).data)
    assert [key for sheet in sheets for key in sheet] == list(range(1, start))
    assert all(len(sheet) == sheet_rows - 1 for sheet in sheets[:-1])


def test_a_page_to_cut_that_is_not_the_committed_one_is_refused():
    data = packed(b"<row></row>" * 12)
    record = PageRecord(rows=12, length=len(data), raw_length=132, raw_crc=1)
    spec = specification(TEXT, format=Format.XLSX, sheet_rows=11)
    with pytest.raises(StepBroken):
        list(formats.get(Format.XLSX).assemble(spec, [SegmentPages("s", [record])], AS_OF, lambda place: data))


def test_a_long_title_leaves_room_for_its_number():
    """H053"""
    assert sheet_names("甲" * 40, count=2) == ["甲" * 31, "甲" * 29 + "_2"]


@pytest.mark.parametrize(
    ("title", "count", "names"),
    [
        ("a/b\\c?d*e[f]g:h", 1, ["a_b_c_d_e_f_g_h"]),
        ("'quoted'", 1, ["_quoted_"]),
        ("a" * 30 + "'b", 1, ["a" * 30 + "_"]),
        ("", 2, ["Sheet", "Sheet_2"]),
        ("History", 2, ["History_2", "History_3"]),
        ("a\x00b\ufffe", 1, ["a\ufffdb\ufffd"]),
        ("😀" * 20, 2, ["😀" * 15, "😀" * 14 + "_2"]),
        ("b" * 29 + "_2 tail", 3, ["b" * 29 + "_2", "b" * 29 + "_3", "b" * 29 + "_4"]),
    ],
)
def test_names_are_those_that_a_spreadsheet_accepts(title, count, names):
    assert sheet_names(title, count=count) == names


def test_a_title_with_forbidden_characters_makes_a_valid_workbook():
    made = in_sheets([numbered(12)], sheet_title="a/b & <c>")
    assert openpyxl.load_workbook(io.BytesIO(made.data)).sheetnames == ["a_b & <c>", "a_b & <c>_2"]


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_checksums_of_joined_pieces_are_those_of_the_whole(first, second):
    assert crc32_joined(crc32(first), crc32(second), length=len(second)) == zlib.crc32(first + second)


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 200_000])
def test_stored_and_packed_pieces_join_into_one_stream(size):
    data = (bytes(range(256)) * (size // 256 + 1))[:size]
    stream = packed(b"a" * 10) + stored(data) + packed(data) + stored(data, last=True)
    reader = zlib.decompressobj(-15)
    assert reader.decompress(stream) == b"a" * 10 + data * 3
    assert (reader.eof, reader.unused_data) == (True, b"")
    assert unpacked(packed(data)) == data


class _Sparse(io.RawIOBase):
    """The pieces of an artifact as a file; ranges of segments read as zeros."""

    def __init__(self, pieces):
        self.pieces, self.at, self.size = [], 0, 0
        for piece in pieces:
            length = len(piece.data) if isinstance(piece, Literal) else piece.length
            self.pieces.append((self.size, length, piece))
            self.size += length

    def readable(self):
        return True

    def seekable(self):
        return True

    def tell(self):
        return self.at

    def seek(self, offset, whence=0):
        self.at = max(0, offset + {0: 0, 1: self.at, 2: self.size}[whence])
        return self.at

    def read(self, size=-1):
        end = self.size if size is None or size < 0 else min(self.at + size, self.size)
        out = b""
        for start, length, piece in self.pieces:
            low, high = max(start, self.at), min(start + length, end)
            if low < high:
                data = piece.data[low - start : high - start] if isinstance(piece, Literal) else bytes(high - low)
                out += data
        self.at = max(self.at, end)
        return out


def plan(*records):
    """A file planned from page records alone."""
    spec = specification(TEXT, format=Format.XLSX, sheet_rows=1000)
    segments = [SegmentPages(f"s{number}", [page]) for number, page in enumerate(records)]
    return _Sparse(formats.get(Format.XLSX).assemble(spec, segments, AS_OF, lambda place: b""))


def page_of(rows, *, length, raw_length):
    return PageRecord(rows=rows, length=length, raw_length=raw_length, raw_crc=7)


def local_sizes(file, entry):
    """Raw and packed size out of the local header, from its extra field where it is zip64."""
    file.seek(entry.header_offset)
    header = file.read(30 + len(entry.filename) + 20)
    assert header[:4] == b"PK\x03\x04"
    version, packed_size, raw_size, name, extra = struct.unpack("<4xH12xIIHH", header[:30])
    if raw_size != 0xFFFFFFFF:
        return version, raw_size, packed_size
    assert (packed_size, extra) == (0xFFFFFFFF, 20)
    return version, *struct.unpack("<4xQQ", header[30 + name : 30 + name + extra])


def sheets_of(file):
    return [entry for entry in zipfile.ZipFile(file).infolist() if "worksheets" in entry.filename]


def test_a_small_file_needs_no_zip64():
    file = plan(page_of(999, length=GIB, raw_length=3 * GIB))
    (entry,) = sheets_of(file)
    assert entry.extract_version == 20
    assert local_sizes(file, entry) == (20, entry.file_size, entry.compress_size)
    file.seek(0, 2)
    file.seek(-42, 1)
    assert not file.read(20).startswith(b"PK\x06\x07")


def test_a_sheet_beyond_4_gib_is_zip64():
    file = plan(page_of(500, length=GIB, raw_length=3 * GIB), page_of(499, length=GIB, raw_length=3 * GIB))
    (entry,) = sheets_of(file)
    assert 6 * GIB < entry.file_size < 6 * GIB + 5000
    assert 2 * GIB < entry.compress_size < 2 * GIB + 5000
    assert local_sizes(file, entry) == (45, entry.file_size, entry.compress_size)


def test_sheets_and_directory_behind_4_gib_are_found():
    file = plan(*[page_of(999, length=3 * GIB, raw_length=3 * GIB)] * 3)
    entries = sheets_of(file)
    assert [entry.header_offset // (3 * GIB) for entry in entries] == [0, 1, 2]
    for entry in entries:
        assert local_sizes(file, entry) == (20, entry.file_size, entry.compress_size)


def test_a_member_of_6_gib_packed_is_zip64():
    file = plan(page_of(999, length=6 * GIB, raw_length=6 * GIB))
    (entry,) = sheets_of(file)
    assert local_sizes(file, entry) == (45, entry.file_size, entry.compress_size)
    assert entry.compress_size > 6 * GIB
