"""Django `values_list` in keyset pages of 2,000 rows, and csv.writer: what most teams would write."""

import csv

from tests.bench.peers.common import COLUMNS, PAGE, arguments, order_model

if __name__ == "__main__":
    args = arguments()
    rows = order_model(args.url).objects.order_by("id").values_list(*COLUMNS)
    with open(args.out, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        page = list(rows[:PAGE])
        while page:
            writer.writerows(page)
            page = list(rows.filter(id__gt=page[-1][0])[:PAGE])
