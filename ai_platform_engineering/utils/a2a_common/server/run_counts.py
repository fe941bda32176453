"""The counters and histograms of a server, as plain numbers. Those of several processes can be added."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

Labels = tuple[str, ...]
"""The values of the labels of one counter or histogram."""

_RUN_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_STORE_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)


class Histogram:
    """Numbers of observations: `counts[i]` has those up to `bounds[i]`, the last one those above all bounds."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add(self, counts: Sequence[int], total: float) -> None:
        """Add the observations of a histogram with the same bounds."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, counts, strict=True)]
        self.total += total


class RunCounts:
    def __init__(self) -> None:
        self.events = 0
        self.runs: Counter[Labels] = Counter()
        self.recoveries: Counter[Labels] = Counter()
        self.durations: defaultdict[Labels, Histogram] = defaultdict(lambda: Histogram(_RUN_SECONDS))
        self.tool_calls: Counter[Labels] = Counter()
        self.delegations: Counter[Labels] = Counter()
        self.model_turns: Counter[Labels] = Counter()
        self.store_operations: defaultdict[Labels, Histogram] = defaultdict(lambda: Histogram(_STORE_SECONDS))

    def add_json(self, values: Mapping[str, Any]) -> None:
        """Add the numbers of another process, as its `to_json` returned them."""
        self.events += values["events"]
        for name, counter in self._counters().items():
            for labels, count in values[name]:
                counter[tuple(labels)] += count
        for name, histograms in self._histograms().items():
            for labels, counts, total in values[name]:
                histograms[tuple(labels)].add(counts, total)

    def to_json(self) -> dict[str, Any]:
        counters = {name: [*counter.items()] for name, counter in self._counters().items()}
        histograms = {
            name: [(labels, histogram.counts, histogram.total) for labels, histogram in [*found.items()]]
            for name, found in self._histograms().items()
        }
        return {"events": self.events, **counters, **histograms}

    def _counters(self) -> dict[str, Counter[Labels]]:
        return {
            "runs": self.runs,
            "recoveries": self.recoveries,
            "tool_calls": self.tool_calls,
            "delegations": self.delegations,
            "model_turns": self.model_turns,
        }

    def _histograms(self) -> dict[str, defaultdict[Labels, Histogram]]:
        return {"durations": self.durations, "store_operations": self.store_operations}
