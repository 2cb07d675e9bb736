"""The counters in Redis as Prometheus families. They are read at each scrape, so every web process answers alike."""

import platform
from collections.abc import Iterable, Iterator, Mapping

import django
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

import exports
from exports import service
from exports.contracts import State, Step
from exports.messages import CAUSES
from exports.state.store import Counters, Durations
from exports.state.watching import Signs
from exports.telemetry import metrics as names

_BUILD = {"version": exports.__version__, "python": platform.python_version(), "django": django.__version__}


class ExportCollector(Collector):
    """Raises: StateUnavailable; a scrape without Redis fails and shows no zeros."""

    def collect(self) -> Iterable[Metric]:
        yield from _counted(service.read_counters())
        yield from _seen(service.read_signs())
        yield _labelled(
            GaugeMetricFamily(names.QUEUE_LENGTH, "Tasks that wait or are worked on", labels=["queue"]),
            service.queue_lengths(),
        )
        yield InfoMetricFamily(names.BUILD.removesuffix("_info"), "The web process that answers", _BUILD)

    def describe(self) -> Iterable[Metric]:
        """Registered without a scrape: Redis may be away when a process starts."""
        return []


class Both(Collector):
    """Our registry, then the one that django-prometheus fills."""

    def __init__(self, own: CollectorRegistry) -> None:
        self.own = own

    def collect(self) -> Iterable[Metric]:
        yield from self.own.collect()
        yield from REGISTRY.collect()


def _counted(counters: Counters) -> Iterator[Metric]:
    """What has happened since this Redis is in use."""
    yield _labelled(
        CounterMetricFamily(names.TASKS, "Tasks that entered a state", labels=["state"]),
        {str(s): counters.states[s] for s in State},
    )
    yield CounterMetricFamily(names.ROWS, "Rows committed, over all tasks", value=counters.rows)
    yield _histogram(
        names.DURATION,
        "From the first start to the end of a task's epoch",
        {str(format_): durations for format_, durations in counters.durations.items()},
        label="format",
    )
    yield _histogram(names.PAGES, "To read, encode and append a page that was committed", {"": counters.pages})
    yield CounterMetricFamily(
        names.STALLED, "Times that a running task made no progress for too long", value=counters.stalled
    )
    recoveries = {str(step): counters.recoveries[step] for step in Step}
    yield _labelled(
        CounterMetricFamily(names.RECOVERIES, "Steps taken back from workers that were gone", labels=["step"]),
        recoveries,
    )
    retries = {code: counters.retries.get(code, 0) for code in CAUSES}
    yield _labelled(
        CounterMetricFamily(names.RETRIES, "Times that work was put back to be tried again", labels=["cause"]), retries
    )
    yield CounterMetricFamily(
        names.ROWS_DRIFTED,
        "Rows by which counts after the last read differed from the plan",
        value=counters.rows_drifted,
    )
    drifted = {str(drift): count for drift, count in counters.drifted.items()}
    yield _labelled(
        CounterMetricFamily(
            names.SHARDS_DRIFTED, "Shards whose rows changed since the plan, or may have", labels=["drift"]
        ),
        drifted,
    )
    yield CounterMetricFamily(
        names.REQUEST_HITS, "Submits answered with the task that has their requestId", value=counters.request_hits
    )
    results = {str(result): count for result, count in counters.callbacks.items()}
    yield _labelled(CounterMetricFamily(names.CALLBACKS, "Attempts at callbacks", labels=["result"]), results)
    yield CounterMetricFamily(names.CALLBACK_REPLAYS, "Callbacks sent anew by hand", value=counters.callback_replays)
    yield _labelled(
        CounterMetricFamily(names.WORKER_RESTARTS, "Workers that left to be started again, or died", labels=["reason"]),
        counters.restarts,
    )


def _seen(signs: Signs) -> Iterator[Metric]:
    """What is at this moment."""
    yield _labelled(
        GaugeMetricFamily(names.TASKS_NOW, "Tasks in a state", labels=["state"]),
        {str(s): signs.states[s] for s in State},
    )
    since = signs.now_ms if signs.oldest_queued_ms is None else signs.oldest_queued_ms
    yield GaugeMetricFamily(
        names.OLDEST, "How long the oldest queued task has waited", value=(signs.now_ms - since) / 1000
    )
    groups: dict[str, list[int]] = {}
    for sign in signs.workers.values():
        groups.setdefault(sign.group, []).append(sign.rss_mb * 2**20)
    yield _labelled(
        GaugeMetricFamily(names.WORKERS, "Worker processes that are alive", labels=["group"]),
        {group: len(sizes) for group, sizes in sorted(groups.items())},
    )
    yield _labelled(
        GaugeMetricFamily(names.WORKER_RSS, "Memory of the largest worker of a group", labels=["group"]),
        {group: max(sizes) for group, sizes in sorted(groups.items())},
    )
    if signs.spool is not None:
        used, free = signs.spool
        yield GaugeMetricFamily(names.SPOOL, "Size of the spool's files", value=used)
        yield GaugeMetricFamily(names.SPOOL_FREE, "Free space where the spool is", value=free)


def _labelled(
    family: CounterMetricFamily | GaugeMetricFamily, counts: Mapping[str, int]
) -> CounterMetricFamily | GaugeMetricFamily:
    """counts: value of the family's one label → count."""
    for value, count in counts.items():
        family.add_metric([value], count)
    return family


def _histogram(name: str, text: str, series: Mapping[str, Durations], *, label: str = "") -> Metric:
    family = HistogramMetricFamily(name, text, labels=[label] if label else [])
    for value, durations in series.items():
        buckets = [(str(bound), float(count)) for bound, count in durations.buckets]
        family.add_metric([value] if label else [], [*buckets, ("+Inf", float(durations.count))], durations.sum_seconds)
    return family


registry = CollectorRegistry()
registry.register(ExportCollector())


def exposition() -> bytes:
    """All metrics in Prometheus' text format."""
    return generate_latest(Both(registry))
