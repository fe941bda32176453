"""Samples and the numbers taken from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Answered:
    """How one request was answered, in seconds since it was sent; `events` counts what came. `ended` is the time of the
    end, on the clock of `time.perf_counter`."""

    first_event: float
    first_answer: float
    total: float
    events: int
    ended: float = 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A batch of requests. CPU is that of all processes they went through; `parts` has it for each of these."""

    cpu_ms: float
    first_event_ms: float
    first_answer_ms: float
    per_second: float
    events: float
    parts: tuple[float, ...] = ()


def _cpu(taken: Sample) -> float:
    return taken.cpu_ms


def sample(answers: Sequence[Answered], cpu_seconds: Sequence[float], wall_seconds: float) -> Sample:
    count = len(answers)
    parts = tuple(seconds / count * 1000 for seconds in cpu_seconds)
    return Sample(
        cpu_ms=sum(parts),
        first_event_ms=median(answer.first_event for answer in answers) * 1000,
        first_answer_ms=median(answer.first_answer for answer in answers) * 1000,
        per_second=count / wall_seconds,
        events=sum(answer.events for answer in answers) / count,
        parts=parts,
    )


def steady_rate(answers: Iterable[Answered], streams: int) -> float:
    """Requests per second while all streams were busy.

    That is from the time when as many requests have been answered as there are streams, until the last request begins,
    when the same number is still to be answered.
    """
    ends = sorted(answer.ended for answer in answers)
    steady = ends[streams - 1 : len(ends) - streams]
    if len(steady) < 2:
        raise ValueError(f"{len(ends)} requests are too few for {streams} streams")
    return (len(steady) - 1) / (steady[-1] - steady[0])


def best(samples: Iterable[Sample]) -> Sample:
    """The best of each: other work on the machine only ever makes a number worse.

    The parts are those of the batch that took the least CPU, so that they add up to it.
    """
    batches = list(samples)
    cheapest = min(batches, key=lambda batch: batch.cpu_ms)
    return Sample(
        cpu_ms=cheapest.cpu_ms,
        first_event_ms=min(batch.first_event_ms for batch in batches),
        first_answer_ms=min(batch.first_answer_ms for batch in batches),
        per_second=max(batch.per_second for batch in batches),
        events=cheapest.events,
        parts=cheapest.parts,
    )


def bests(rounds: Sequence[Mapping[Key, Sample]]) -> dict[Key, Sample]:
    return {name: best(batches[name] for batches in rounds) for name in rounds[0]}


def middle_ratio(
    rounds: Sequence[Mapping[Key, Sample]], name: Key, to: Key, of: Callable[[Sample], float] = _cpu
) -> float:
    """A number of one subject, its CPU if no other is named, against that of another in the same round: the middle one
    of all rounds."""
    return median(of(batches[name]) / of(batches[to]) for batches in rounds)


def cost_of_one(many: Sample, few: Sample) -> float:
    """CPU milliseconds of one event, from the same requests with many events and with few."""
    return (many.cpu_ms - few.cpu_ms) / (many.events - few.events)
