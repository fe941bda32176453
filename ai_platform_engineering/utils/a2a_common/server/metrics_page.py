"""The page `/metrics`: the numbers of one server, rendered with prometheus_client.

Imported with the first scrape, because the library would add 20 ms to every start. Each page has its own registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from starlette.responses import Response

from ai_platform_engineering.installation import product_version
from ai_platform_engineering.utils.a2a_common.server.metrics import Histogram, Labels, RunMetrics, ServerState

_PREFIX: Final = "platform_engineer_"


class MetricsPage(Collector):
    """A collector of prometheus_client over the numbers of the server of `agent`."""

    def __init__(self, metrics: RunMetrics, agent: str, state: Callable[[], ServerState]) -> None:
        self._metrics = metrics
        self._state = state
        self._build = {"version": product_version(), "server": agent}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)

    def render(self) -> Response:
        return Response(generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    def collect(self) -> Iterator[Metric]:
        state, metrics = self._state(), self._metrics
        yield InfoMetricFamily(f"{_PREFIX}build", "Version of the product, and the agent it serves.", self._build)
        yield _gauge("degraded", "1 while a store cannot be used and the server works only in part.", state.degraded)
        yield _gauge("runs_in_progress", "Runs in progress.", state.running)
        yield _gauge("runs_queued", "Messages that wait for their turn in a conversation.", state.queued)
        yield _gauge("open_streams", "Open event streams (SSE).", state.streams)
        if (audit := state.audit) is not None:
            yield _gauge("audit_last_entry", "Number of the last audit entry of this process.", audit.seq)
            yield _gauge("audit_entries_pending", "Audit entries that are not stored yet.", audit.pending)
            yield _counter("audit_entries_lost", "Audit entries that could not be stored.", (), {(): audit.lost})
        yield _counter("events", "Events appended to the event log.", (), {(): metrics.events})
        yield _counter("runs_ended", "Ends of runs, failures with their code.", ("outcome", "code"), metrics.runs)
        yield _histogram(
            "run_duration_seconds",
            "Time from the start of a run to its end, or to a form.",
            ("outcome",),
            metrics.durations,
        )
        calls = ("agent", "outcome")
        yield _counter("model_turns", "Turns of the models of agents in this process.", calls, metrics.model_turns)
        yield _counter("tool_calls", "Tool calls that have ended.", calls, metrics.tool_calls)
        yield _counter("delegations", "Delegations to agents that have ended.", calls, metrics.delegations)
        yield _counter(
            "runs_recovered", "Runs that another process began and this one resumed.", ("reason",), metrics.recoveries
        )
        yield _histogram(
            "store_operation_seconds",
            "Duration of operations of the stores.",
            ("store", "kind", "operation"),
            metrics.store_operations,
        )


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(_PREFIX + name, text, value)


def _counter(name: str, text: str, labels: Labels, counts: Mapping[Labels, int]) -> Metric:
    family = CounterMetricFamily(_PREFIX + name, text, labels=labels)
    for values, count in counts.items():
        family.add_metric(values, count)
    return family


def _histogram(name: str, text: str, labels: Labels, histograms: Mapping[Labels, Histogram]) -> Metric:
    family = HistogramMetricFamily(_PREFIX + name, text, labels=labels)
    for values, histogram in histograms.items():
        bounds = [*(str(float(bound)) for bound in histogram.bounds), "+Inf"]
        family.add_metric(values, [*zip(bounds, accumulate(histogram.counts), strict=True)], histogram.total)
    return family
