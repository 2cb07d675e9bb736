"""The service's own hot path without the service: read, encode and append in processes, then join. No queue, no
leases, no commits, no checks."""

import argparse
import datetime as dt
import hashlib
import json
import multiprocessing
import os
import sys
from pathlib import Path

import django

from config import heap


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--first", type=dt.date.fromisoformat, required=True)
    parser.add_argument("--last", type=dt.date.fromisoformat, required=True)
    parser.add_argument("--format", default="csv")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    with multiprocessing.get_context("fork").Pool(args.processes, initializer=_start) as pool:
        days = [args.first + dt.timedelta(days=n) for n in range((args.last - args.first).days + 1)]
        list(pool.imap_unordered(_shard, [(day, args) for day in days], chunksize=1))
    digest = hashlib.sha256()
    with open(args.out, "wb") as out:
        for day in days:
            part = Path(f"{args.out}.{day}")
            data = part.read_bytes()
            digest.update(data)
            out.write(data)
            part.unlink()
    json.dump({"sha256": digest.hexdigest()}, sys.stdout)


def _start() -> None:
    heap.keep()
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.worker"
    django.setup()


def _shard(work: tuple[dt.date, argparse.Namespace]) -> None:
    from exports import formats, kinds, service
    from exports.contracts import ExportRequest, Format
    from exports.pipeline.specification import specify

    day, args = work
    kind = kinds.get(service.default_kind())
    request = ExportRequest(kind.name, "bench", "bench", args.first, args.last, Format(args.format))
    output = formats.get(request.format)
    encoder = output.encoder(specify(request))
    shard = kind.plan_shard(request, kind.take_snapshot(request), day.isoformat())
    cursor = ""
    with open(f"{args.out}.{day}", "wb") as part:
        while (block := kind.read(shard, cursor, 2000, output.time_form, frozenset())).rows:
            part.write(encoder.page(block).data)
            cursor = block.last_key


if __name__ == "__main__":
    main()
