"""The fastest public XLSX writer: connectorx into an Arrow frame, rustpy-xlsxwriter over it; all rows in memory."""

import polars
from rustpy_xlsxwriter import write_worksheet

from tests.bench.peers.common import arguments, select

if __name__ == "__main__":
    args = arguments()
    frame = polars.read_database_uri(select(money="float8"), args.url, engine="connectorx")
    write_worksheet(frame, args.out, sheet_name="orders", datetime_format="yyyy-mm-dd hh:mm:ss")
