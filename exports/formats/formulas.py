"""Which text a spreadsheet may take for a formula when it opens a CSV file.

Source: https://owasp.org/www-community/attacks/CSV_Injection (the leading characters and their full-width
forms). White space and invisible characters in front are looked past, since spreadsheets trim them.
"""

import re

import numpy as np

from exports.blocks import Grid, Numbers, byte_set

_SIGN = rb"(?:[=+@-]|\xef\xbc[\x8b\x8d\x9d\xa0])"
_BLANK = (
    rb"(?:[ \t\n\r]|\xc2[\x85\xa0]|\xe1\x9a\x80|\xe1\xa0\x8e|\xe2\x80[\x80-\x8f\xa8\xa9\xaf]|\xe2\x81[\x9f\xa0]"
    rb"|\xe3\x80\x80|\xef\xbb\xbf)"
)
_FORMULA = re.compile(rb"[\x00\t\n\r]|%b*%b" % (_BLANK, _SIGN))
_NEGATIVE_NUMBER = re.compile(rb"-[0-9]+(?:\.[0-9]+)?")
_FIRST_BYTES = byte_set(b"\x00\t\n\r +=@-\xc2\xe1\xe2\xe3\xef")
"""With which byte text starts that needs a guard; most of what starts so needs none."""


def looks_like_formula(cell: bytes) -> bool:
    """Whether the text needs a guard; a plain negative decimal number such as -0.02 does not."""
    return _FORMULA.match(cell) is not None and _NEGATIVE_NUMBER.fullmatch(cell) is None


def suspects(grid: Grid) -> Numbers:
    """Numbers of the few cells that may look like a formula; all that do are among them."""
    return np.flatnonzero(_FIRST_BYTES[grid.first_codes()])
