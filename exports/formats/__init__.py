"""The file formats: bytes out of blocks (`encoder`), and the finished file out of committed pages (`assemble`).

cells.py        what both formats do to a page: split it, replace what neither can carry, spell times
formulas.py     which text a spreadsheet may take for a formula
delimited.py    CSV
spreadsheet.py  XLSX: row_markup.py makes the <row> XML, sheet_breaks.py places pages on sheets,
                workbook.py makes everything around the rows, archive.py and deflate.py the zip file
description.py  what the columns look like in each format, in words
"""

from exports.contracts import Format
from exports.formats.base import OutputFormat
from exports.formats.delimited import DelimitedFormat
from exports.formats.spreadsheet import SpreadsheetFormat

_FORMATS: dict[Format, OutputFormat] = {Format.CSV: DelimitedFormat(), Format.XLSX: SpreadsheetFormat()}


def get(wanted: Format, /) -> OutputFormat:
    """The one implementation of a format; it holds no state."""
    return _FORMATS[wanted]
