"""The texts that plan keeps in Redis and later stages read: a snapshot, and one shard each."""

import datetime as dt
import json

from exports.contracts import Shard, Snapshot


def dump_snapshot(snapshot: Snapshot) -> str:
    return json.dumps([snapshot.as_of.isoformat(), snapshot.bounds, snapshot.certain])


def load_snapshot(text: str) -> Snapshot:
    as_of, bounds, certain = json.loads(text)
    return Snapshot(dt.datetime.fromisoformat(as_of), bounds, certain)


def dump_shard(shard: Shard) -> str:
    return json.dumps([shard.label, shard.bounds, shard.planned])


def load_shard(shard_id: str, text: str) -> Shard:
    label, bounds, planned = json.loads(text)
    return Shard(shard_id, label, bounds, planned)
