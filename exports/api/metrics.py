"""The counters in Redis as Prometheus families. They are read at each scrape, so every web process answers alike."""

from collections.abc import Iterable

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from exports import service
from exports.contracts import State
from exports.state.store import Counters
from exports.telemetry import metrics as names


class ExportCollector(Collector):
    """Raises: StateUnavailable; a scrape without Redis fails and shows no zeros."""

    def collect(self) -> Iterable[Metric]:
        counters = service.read_counters()
        yield _tasks(counters)
        yield CounterMetricFamily(names.ROWS, "Rows committed, over all tasks", value=counters.rows)
        yield CounterMetricFamily(
            names.STALLED, "Times that a running task made no progress for too long", value=counters.stalled
        )
        yield _durations(counters)
        yield _callbacks(counters)
        yield CounterMetricFamily(
            names.CALLBACK_REPLAYS, "Callbacks sent anew by hand", value=counters.callback_replays
        )
        yield _queue_lengths()
        yield _worker_restarts(counters)
        yield _worker_memory()

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


def _tasks(counters: Counters) -> Metric:
    family = CounterMetricFamily(names.TASKS, "Tasks that entered a state", labels=["state"])
    for state in State:
        family.add_metric([state.value], counters.states.get(state, 0))
    return family


def _durations(counters: Counters) -> Metric:
    family = HistogramMetricFamily(
        names.DURATION, "From the first start to the end of a task's epoch", labels=["format"]
    )
    for format_, durations in counters.durations.items():
        buckets = [(str(bound), float(count)) for bound, count in durations.buckets]
        family.add_metric([format_.value], [*buckets, ("+Inf", float(durations.count))], durations.sum_seconds)
    return family


def _callbacks(counters: Counters) -> Metric:
    family = CounterMetricFamily(names.CALLBACKS, "Attempts at callbacks", labels=["result"])
    for result, count in counters.callbacks.items():
        family.add_metric([result.value], count)
    return family


def _queue_lengths() -> Metric:
    family = GaugeMetricFamily(names.QUEUE_LENGTH, "Tasks that wait or are worked on", labels=["queue"])
    for queue, tasks in service.queue_lengths().items():
        family.add_metric([queue], tasks)
    return family


def _worker_restarts(counters: Counters) -> Metric:
    family = CounterMetricFamily(
        names.WORKER_RESTARTS, "Workers that left to be started again, or died", labels=["reason"]
    )
    for reason, count in counters.restarts.items():
        family.add_metric([reason], count)
    return family


def _worker_memory() -> Metric:
    family = GaugeMetricFamily(names.WORKER_RSS, "Memory of the largest worker of a group", labels=["group"])
    for group, rss_mb in service.largest_workers().items():
        family.add_metric([group], rss_mb * 2**20)
    return family


registry = CollectorRegistry()
registry.register(ExportCollector())


def exposition() -> bytes:
    """All metrics in Prometheus' text format."""
    return generate_latest(Both(registry))
