"""Order exports: a durable background task behind one endpoint.

    api | ops | management     what people and programs ask for
            │
        operations             for operators: overview, lists by filter, actions with a preview
            │
         service               the one door: submit, read, cancel, rerun, open the file
            │
         pipeline              plan → shard → render → upload, sweep: one claimed step at a time; notify tells others
            │
    state   kinds   formats   storage   webhooks
      │       │        │          │         └── signed callbacks to checked addresses
      │       │        │          └── segments in the spool, recipes, finished files
      │       │        └── bytes out of blocks: CSV, XLSX
      │       └── which rows: shards and pages of the orders table, read only
      └── one Lua script a transition: the truth about every task, in Redis

Start reading at `contracts` (the values that cross these lines), then `pipeline/shard.py` (one page: read, encode,
append, commit) and `state/lua/commit_page.lua` (what makes it count). `docs/design.md` is the whole on one page.
"""

__version__ = "0.1.0"
