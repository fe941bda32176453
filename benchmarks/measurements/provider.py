"""Requests whose model is behind an HTTP API, as in production: CPU and throughput by the number of streams.

Both subjects ask the same scripted server, in a process that is not counted, and make the same number of model calls.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from benchmarks.effort import Effort, in_turns
from benchmarks.processes import Process, started
from benchmarks.rows import Row
from benchmarks.samples import bests, middle_ratio
from benchmarks.scenario import MODEL_CALLS
from benchmarks.subjects import Subject, bare, product, together

LABELS: Final = {
    "bare": "create_deep_agent with ChatOpenAI, no server",
    "product": "product as it comes",
    "remote": "product as it comes, agent remote",
}
_MANY_STREAMS: Final = 32


def provider(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    with started("benchmarks.provider.server") as server:
        wanted: dict[str, AbstractContextManager[Subject]] = {
            "bare": bare(provider=server.url),
            "product": product(provider=server.url),
            "remote": product(remote=True, provider=server.url),
        }
        with together(wanted) as subjects:
            for subject in subjects.values():
                _check_calls(subject, server)
            for streams in effort.streams:
                rows += _rows(subjects, effort, streams)
    return rows


def _check_calls(subject: Subject, server: Process) -> None:
    server.calls()
    subject.load(1)
    if (calls := server.calls()) != MODEL_CALLS:
        raise RuntimeError(f"a request made {calls} model calls, and not {MODEL_CALLS}")


def _rows(subjects: dict[str, Subject], effort: Effort, streams: int) -> list[Row]:
    # Every stream has a request, so a round with many of them is long and says more.
    count = max(min(2, effort.provider_rounds), effort.provider_rounds * _MANY_STREAMS // max(_MANY_STREAMS, streams))
    rounds = in_turns(subjects, count, max(effort.requests // 2, streams), streams=streams)
    found = bests(rounds)
    rows: list[Row] = []
    for name, label in LABELS.items():
        sample = found[name]
        ratio = middle_ratio(rounds, name, to="bare")
        where = f"{label}, {streams} at once"
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
        ]
    return rows
