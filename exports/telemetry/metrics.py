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
"""Upper bounds of the histogram, in seconds and rising; the last bucket, without a bound, is not listed."""
