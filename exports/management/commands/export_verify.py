"""`manage.py export_verify TASK`: does a finished file hold what its manifest and the database say?"""

from typing import Any

from exports import service
from exports.management.base import OPERATOR, Answer, TaskCommand
from exports.pipeline.verifying import Proof, ShardProof

_SAID = {
    "rows": "the database has {now} rows, the file {rows}",
    "keys": "the database has as many rows, but other ones",
    "bytes": "its bytes in the file are damaged",
    "uncounted": "the database took too long to count it",
    "personal": "its keys are personal data: the manifest does not tell what to count",
    "file": "the file has other bytes than were published",
    "manifest": "the manifest tells of another file than was published",
}


class Command(TaskCommand):
    help = (
        "Counts every shard of a finished file in the database again and hashes its bytes again. Names each shard that "
        "differs; exit code 1 when one does."
    )

    def answer(self, given: dict[str, Any]) -> Answer:
        proof = service.verify(given["task"], principal=OPERATOR)
        data = {
            "taskId": given["task"],
            "holds": proof.holds,
            "faults": list(proof.faults),
            "shards": [_data(shard) for shard in proof.shards],
        }
        return Answer(_lines(proof), data, done=proof.holds)


def _lines(proof: Proof) -> list[str]:
    found = [_SAID[fault] for fault in proof.faults]
    for shard in proof.shards:
        found += [f"{shard.shard_id}: {_sentence(fault, shard)}" for fault in shard.faults]
    rows = sum(shard.rows for shard in proof.shards)
    return found or [f"verified: {rows:,} rows in {len(proof.shards)} shards, every byte"]


def _sentence(fault: str, shard: ShardProof) -> str:
    return _SAID[fault].format(now=shard.rows_now, rows=shard.rows)


def _data(shard: ShardProof) -> dict[str, Any]:
    return {
        "shardId": shard.shard_id,
        "rows": shard.rows,
        "rowsNow": shard.rows_now,
        "faults": list(shard.faults),
    }
