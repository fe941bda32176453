"""Requests whose model is behind an HTTP API, as in production: CPU and throughput by the number of streams.

All subjects ask the same scripted server, in a process that is not counted, and make the same number of model calls.
Memory per open stream and the start are in `provider_memory` and `provider_start`.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Final

from benchmarks.effort import Effort, in_turns
from benchmarks.measurements.provider_memory import memory
from benchmarks.measurements.provider_start import start
from benchmarks.processes import Process, started
from benchmarks.provider.subjects import LABELS, subjects
from benchmarks.rows import Row
from benchmarks.samples import bests, middle_ratio
from benchmarks.scenario import MODEL_CALLS
from benchmarks.subjects import Subject, together
from benchmarks.watched import Watched

_MANY_STREAMS: Final = 32
_MORE_ROUNDS: Final = 3
"""So many times as many rounds with few streams, because such a round has few requests."""
_SERVER: Final = "model"


def provider(effort: Effort) -> list[Row]:
    return [*_load(effort), *memory(effort), *start(effort)]


def _load(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    with started("benchmarks.provider.server") as server, together(subjects(server)) as found:
        for subject in found.values():
            _check_calls(subject, server)
        for streams in effort.streams:
            clocks = {_SERVER: server.cpu_seconds}
            rows += _rows({name: Watched(subject, clocks) for name, subject in found.items()}, effort, streams)
    return rows


def _check_calls(subject: Subject, server: Process) -> None:
    server.order({"reset": True})
    subject.load(1)
    if (calls := server.order({})) != MODEL_CALLS:
        raise RuntimeError(f"a request made {calls} model calls, and not {MODEL_CALLS}")


def round_count(effort: Effort, streams: int) -> int:
    """Every stream has a request, so a round with many of them is long and says more."""
    if effort.provider_rounds == 1:
        return 1
    if streams < _MANY_STREAMS:
        return effort.provider_rounds * _MORE_ROUNDS
    return max(2, effort.provider_rounds * _MANY_STREAMS // streams)


def _rows(watched: Mapping[str, Watched], effort: Effort, streams: int) -> list[Row]:
    rounds = in_turns(watched, round_count(effort, streams), max(effort.requests // 2, streams), streams=streams)
    found = bests(rounds)
    rows: list[Row] = []
    for name, label in LABELS.items():
        sample = found[name]
        ratio = middle_ratio(rounds, name, to="bare")
        where = f"{label}, {streams} at once"
        busiest = median(max(each[name].parts) / 1000 * each[name].per_second for each in rounds)
        rows += [
            Row(
                f"provider.{streams}.{name}.call",
                f"CPU per model call: {where}",
                sample.cpu_ms / MODEL_CALLS,
                "ms",
                ratio,
            ),
            Row(f"provider.{streams}.{name}.request", f"CPU per request: {where}", sample.cpu_ms, "ms", ratio),
            Row(
                f"provider.{streams}.{name}.throughput",
                f"Requests: {where}",
                sample.per_second,
                "/s",
                sample.per_second / found["bare"].per_second,
            ),
            Row(f"provider.{streams}.{name}.busiest", f"Busiest process: {where}", busiest * 100, "%"),
            Row(
                f"provider.{streams}.{name}.server",
                f"Model's server: {where}",
                watched[name].share(_SERVER) * 100,
                "%",
            ),
        ]
    return rows
