"""A subject, and the CPU that other processes use while the subject is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median

from benchmarks.samples import Sample
from benchmarks.subjects import Loadable


@dataclass(frozen=True, slots=True)
class _Batch:
    requests: int
    seconds: float
    cpu_seconds: Mapping[str, float]


@dataclass(frozen=True)
class Watched:
    """`clocks` are the CPU seconds of the other processes, by the names of these."""

    subject: Loadable
    clocks: Mapping[str, Callable[[], float]]
    _batches: list[_Batch] = field(default_factory=list)

    def load(self, requests: int, *, streams: int = 1, context: str | None = None) -> Sample:
        before, began = {name: clock() for name, clock in self.clocks.items()}, time.perf_counter()
        found = self.subject.load(requests, streams=streams, context=context)
        seconds = time.perf_counter() - began
        self._batches.append(
            _Batch(requests, seconds, {name: clock() - before[name] for name, clock in self.clocks.items()})
        )
        return found

    def share(self, name: str) -> float:
        """The share of a core that a process is busy."""
        return median(batch.cpu_seconds[name] / batch.seconds for batch in self._batches)

    def per_request_ms(self, name: str) -> float:
        """The CPU of a process for a request."""
        return median(batch.cpu_seconds[name] / batch.requests for batch in self._batches) * 1000
