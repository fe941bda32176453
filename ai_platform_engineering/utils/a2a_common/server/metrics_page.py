"""The page `/metrics`: the numbers of one server, rendered with prometheus_client.

Imported with the first scrape, because the library would add 20 ms to every start. Each page has its own registry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from ai_platform_engineering.utils.a2a_common.server.metrics import ProcessValues, Scrape
from ai_platform_engineering.utils.a2a_common.server.run_counts import Histogram, Labels

_PREFIX: Final = "platform_engineer_"


def render(scrape: Scrape, agent: str) -> Response:
    """The page of the server of `agent`."""
    registry = CollectorRegistry()
    registry.register(_Numbers(scrape, agent))
    PlatformCollector(registry=registry)
    if scrape.processes:
        registry.register(_Processes(scrape.processes))
    else:
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
    return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})


def process_values() -> dict[str, float]:
    """The metrics of this process, by name."""
    return {family.name: family.samples[0].value for family in ProcessCollector(registry=None).collect()}


class _Numbers(Collector):
    def __init__(self, scrape: Scrape, agent: str) -> None:
        self._scrape = scrape
        self._build = {"version": product_version(), "server": agent}

    def collect(self) -> Iterator[Metric]:
        state, counts = self._scrape.state, self._scrape.counts
        yield InfoMetricFamily(f"{_PREFIX}build", "Version of the product, and the agent it serves.", self._build)
        yield _gauge("workers", "Processes of the server that answered the scrape.", len(self._scrape.processes) or 1)
        yield _gauge("degraded", "1 while a store cannot be used and the server works only in part.", state.degraded)
        yield _gauge("runs_in_progress", "Runs in progress.", state.running)
        yield _gauge("runs_queued", "Messages that wait for their turn in a conversation.", state.queued)
        yield _gauge("open_streams", "Open event streams (SSE).", state.streams)
        if (audit := state.audit) is not None:
            yield _gauge("audit_last_entry", "Number of the last audit entry of this server.", audit.seq)
            yield _gauge("audit_entries_pending", "Audit entries that are not stored yet.", audit.pending)
            yield _counter("audit_entries_lost", "Audit entries that could not be stored.", (), {(): audit.lost})
        yield _counter("events", "Events appended to the event log.", (), {(): counts.events})
        yield _counter("runs_ended", "Ends of runs, failures with their code.", ("outcome", "code"), counts.runs)
        yield _histogram(
            "run_duration_seconds",
            "Time from the start of a run to its end, or to a form.",
            ("outcome",),
            counts.durations,
        )
        calls = ("agent", "outcome")
        yield _counter("model_turns", "Turns of the models of agents in this server.", calls, counts.model_turns)
        yield _counter("tool_calls", "Tool calls that have ended.", calls, counts.tool_calls)
        yield _counter("delegations", "Delegations to agents that have ended.", calls, counts.delegations)
        yield _counter(
            "runs_recovered", "Runs that another process began and this one resumed.", ("reason",), counts.recoveries
        )
        yield _histogram(
            "store_operation_seconds",
            "Duration of operations of the stores.",
            ("store", "kind", "operation"),
            counts.store_operations,
        )


class _Processes(Collector):
    """The metrics of several processes, each with the number of the worker."""

    def __init__(self, processes: Mapping[int, ProcessValues]) -> None:
        self._processes = processes

    def collect(self) -> Iterator[Metric]:
        for own in ProcessCollector(registry=None).collect():
            family = Metric(own.name, own.documentation, own.type)
            for worker, values in self._processes.items():
                if (value := values.get(own.name)) is not None:
                    family.add_sample(own.samples[0].name, {"worker": str(worker)}, value)
            yield family


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
