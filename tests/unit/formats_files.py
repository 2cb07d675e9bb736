"""Whole files out of rows, the way the pipeline makes them, and what independent readers see in them."""

import csv
import datetime as dt
import io
import itertools
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any

import openpyxl
import python_calamine

from exports import contracts, formats
from exports.blocks import Block
from exports.contracts import CellType, Column, Format, PageRecord, Specification
from exports.formats.base import Literal, Range, SegmentPages

AS_OF = "2026-10-01T00:00:00Z"


def columns(*types: CellType | tuple[CellType, int]) -> tuple[Column, ...]:
    """A key column, and one column for each type; a number beside a type is its scale."""
    made = [Column("id", "编号", "ID", CellType.INTEGER)]
    for number, entry in enumerate(types):
        kind, scale = entry if isinstance(entry, tuple) else (entry, 0)
        made.append(Column(f"c{number}", f"列{number}", f"Column {number}", kind, scale=scale, nullable=True))
    return tuple(made)


def specification(made_of: Sequence[Column], **changes: Any) -> Specification:
    values: dict[str, Any] = {
        "kind": "sample",
        "format": Format.CSV,
        "columns": tuple(made_of),
        "masked": (),
        "zone": "Asia/Shanghai",
        "header_language": "zh",
        "charset": "utf-8-sig",
        "delimiter": ",",
        "formula_guard": True,
        "sheet_rows": 1_048_576,
        "sheet_title": "订单",
        "renderer": 1,
    }
    return Specification(**(values | changes))


def block(rows: Sequence[Sequence[str | bytes]], *, replaced: tuple[str, ...] = ()) -> Block:
    cells = [[cell.encode() if isinstance(cell, str) else cell for cell in row] for row in rows]
    data = b"\x1e".join(b"\x1f".join(row) for row in cells)
    return Block(data=data, rows=len(rows), last_key=cells[-1][0].decode() if cells else "", replaced=replaced)


def keyed(*values: str | bytes) -> list[list[str | bytes]]:
    """Rows of a key, from 1, and one value."""
    return [[str(number), value] for number, value in enumerate(values, start=1)]


class Exported:
    """A file made of segments, each a list of pages, each a list of rows."""

    def __init__(
        self, spec: Specification, segments: Iterable[Iterable[Sequence[Sequence[str | bytes]]]], *, as_of: str = AS_OF
    ) -> None:
        self.format = formats.get(spec.format)
        encoder = self.format.encoder(spec)
        self.bytes_of: dict[str, bytes] = {}
        self.reads: list[Range] = []
        self.warnings: list[contracts.Warning] = []
        records = []
        for number, pages in enumerate(segments):
            encoded = [encoder.page(block(rows)) for rows in pages]
            self.warnings += [warning for page in encoded for warning in page.warnings]
            name = f"segment-{number}"
            self.bytes_of[name] = b"".join(page.data for page in encoded)
            records.append(SegmentPages(name, [record(page) for page in encoded]))
        self.pieces = list(self.format.assemble(spec, records, as_of, self._read))
        self.data = b"".join(piece.data if isinstance(piece, Literal) else self._bytes(piece) for piece in self.pieces)

    def _bytes(self, place: Range) -> bytes:
        piece = self.bytes_of[place.segment][place.offset : place.offset + place.length]
        assert len(piece) == place.length
        return piece

    def _read(self, place: Range) -> bytes:
        self.reads.append(place)
        return self._bytes(place)


def record(page: contracts.Page) -> PageRecord:
    return PageRecord(
        rows=page.rows,
        length=len(page.data),
        raw_length=page.raw_length,
        raw_crc=page.raw_crc,
        warnings=page.warnings,
    )


def exported(made_of: Sequence[Column], rows: Sequence[Sequence[str | bytes]], **changes: Any) -> Exported:
    """A file of one page."""
    return Exported(specification(made_of, **changes), [[rows]] if rows else [])


def csv_records(made_of: Sequence[Column], rows: Sequence[Sequence[str | bytes]], **changes: Any) -> list[bytes]:
    """The bytes of each record behind the header; a record must not hold CRLF itself."""
    data = exported(made_of, rows, format=Format.CSV, **changes).data
    return data.split(b"\r\n")[1:-1]


def csv_field(value: str | bytes, kind: CellType | tuple[CellType, int] = CellType.TEXT, **changes: Any) -> bytes:
    """The bytes of one field as they stand in the file."""
    data = exported(columns(kind), keyed(value), format=Format.CSV, **changes).data
    record_bytes = data.split(b"\r\n", 1)[1].removesuffix(b"\r\n")
    return record_bytes.split(b",", 1)[1]


def parsed(data: bytes, *, charset: str = "utf-8-sig", delimiter: str = ",") -> list[list[str]]:
    text = io.StringIO(data.decode(charset), newline="")
    return list(csv.reader(text, strict=True, delimiter=delimiter))


def workbook(made_of: Sequence[Column], rows: Sequence[Sequence[str | bytes]], **changes: Any) -> openpyxl.Workbook:
    return openpyxl.load_workbook(io.BytesIO(exported(made_of, rows, format=Format.XLSX, **changes).data))


def xlsx_cells(kind: CellType | tuple[CellType, int], *values: str | bytes) -> list[Any]:
    """openpyxl's cells of one column, without the header."""
    sheet = workbook(columns(kind), keyed(*values)).worksheets[0]
    return [row[1] for row in sheet.iter_rows(min_row=2)]


def sheet_xml(data: bytes, *, number: int = 1) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return archive.read(f"xl/worksheets/sheet{number}.xml").decode()


def values_by_each_reader(data: bytes) -> dict[str, list[list[list[Any]]]]:
    """Sheets of rows of values, header included, as four readers see them. Empty is "" for all."""
    normal = openpyxl.load_workbook(io.BytesIO(data))
    quick = openpyxl.load_workbook(io.BytesIO(data), read_only=True)
    other = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(data))
    seen = {
        "openpyxl": [_filled(sheet.iter_rows(values_only=True)) for sheet in normal.worksheets],
        "openpyxl read-only": [_filled(sheet.iter_rows(values_only=True)) for sheet in quick.worksheets],
        "calamine": [other.get_sheet_by_index(place).to_python() for place in range(len(other.sheet_names))],
    }
    quick.close()
    return seen


def _filled(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    return [["" if value is None else value for value in row] for row in rows]


def serial(moment: dt.datetime) -> str:
    """What a kind writes for a time in `TimeForm.SERIAL`."""
    return repr((moment - dt.datetime.fromisoformat("1899-12-30")) / dt.timedelta(days=1))


def numbered(rows: int, *, start: int = 1) -> list[list[str | bytes]]:
    return [[str(number), f"第{number}行"] for number in range(start, start + rows)]


def in_pages(rows: Sequence[Sequence[str | bytes]], size: int) -> list[list[Sequence[str | bytes]]]:
    rest = iter(rows)
    return list(iter(lambda: list(itertools.islice(rest, size)), []))
