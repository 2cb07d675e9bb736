"""Names and buckets of the metrics: the scripts that count and the collector that shows them share these.

Counters live in Redis and are raised by the script that changes the state, so that a killed process loses none.
"""

TASKS = "export_task_total"
"""Counter by `state`: one more each time a task enters it."""
ROWS = "export_rows_processed_total"
"""Counter: rows committed, over all tasks."""
STALLED = "export_tasks_stalled_total"
"""Counter: times that a running task made no progress for too long."""
DURATION = "export_task_duration_seconds"
"""Histogram by `format`: start of a task to the end of its epoch; one observation an epoch."""
RECOVERIES = "export_recoveries_total"
"""Counter by `step`: steps taken back from workers that were gone."""
RETRIES = "export_retries_total"
"""Counter by `cause`, an error code: work that was put back to be tried again."""
PAGES = "export_page_duration_seconds"
"""Histogram: to read, encode and append a page that was committed."""
ROWS_DRIFTED = "export_rows_drifted_total"
"""Counter: rows by which counts at the last read differed from the plan."""
SHARDS_DRIFTED = "export_shards_drifted_total"
"""Counter by `drift`: shards whose rows changed since the plan, or where nobody can tell."""
REQUEST_HITS = "export_idempotency_hits_total"
"""Counter: submits that were answered with the task that has their requestId."""
TASKS_NOW = "export_tasks"
"""Gauge by `state`: tasks that are in it; ended ones until they expire or are deleted."""
OLDEST = "export_oldest_queued_seconds"
"""Gauge: how long the oldest queued task has waited; 0 where none waits."""
WORKERS = "export_workers"
"""Gauge by `group`: worker processes that gave a sign of life lately."""
SPOOL = "export_spool_bytes"
"""Gauge: size of the spool's files, as a sweep of the last two minutes saw it; absent where none swept."""
SPOOL_FREE = "export_spool_free_bytes"
"""Gauge: free space of the spool's file system, from the same look."""
BUILD = "export_build_info"
"""Always 1; `version` of the product, and of `python` and `django`, in the web process that answers."""
CALLBACKS = "export_callback_total"
"""Counter by `result`: attempts at callbacks that ended so."""
CALLBACK_REPLAYS = "export_callback_replay_total"
"""Counter: callbacks that were sent anew by hand."""
QUEUE_LENGTH = "export_queue_length"
"""Gauge by `queue`: tasks that wait or are worked on, by the kind of their next step."""
WORKER_RESTARTS = "export_worker_restarts_total"
"""Counter by `reason`: workers that left to be started again, or died."""
WORKER_RSS = "export_worker_rss_bytes"
"""Gauge by `group`: memory of the largest worker of a group."""

DURATION_BUCKETS_S = (
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    20.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    1800.0,
    3600.0,
    7200.0,
)
"""Upper bounds of a histogram, in seconds and rising; the last bucket, without a bound, is not listed."""
PAGE_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
"""Those of `PAGES`; a page above the last has exceeded the usual `page_deadline_ms`, and is committed while its lease holds."""
