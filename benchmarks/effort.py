"""How much is done for a number: enough for one that can be trusted, or just enough to see that it can be had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from benchmarks.samples import Sample, bests
from benchmarks.subjects import Subject

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Effort:
    """`rounds` of `requests` each; `calls` of a tool each; `starts` of a process; `conversations` of full length."""

    rounds: int
    requests: int
    calls: int
    starts: int
    conversations: int
    words: int
    idle_streams: int
    agents: tuple[int, ...]
    turns: tuple[int, ...]


FULL: Final = Effort(
    rounds=20,
    requests=10,
    calls=200,
    starts=5,
    conversations=4,
    words=400,
    idle_streams=1000,
    agents=(4, 16, 64),
    turns=(1, 10, 50),
)
QUICK: Final = Effort(
    rounds=1, requests=2, calls=5, starts=1, conversations=1, words=40, idle_streams=20, agents=(2, 4), turns=(1, 2)
)


def in_turns(
    subjects: Mapping[Key, Subject], rounds: int, requests: int, *, streams: int = 1
) -> list[dict[Key, Sample]]:
    """Rounds in which every subject has its turn, so that a busy moment of the machine does not fall on one only."""
    for subject in subjects.values():
        subject.load(requests, streams=streams)
    return [
        {name: subject.load(requests, streams=streams) for name, subject in subjects.items()} for _ in range(rounds)
    ]


def compared(subjects: Mapping[Key, Subject], rounds: int, requests: int, *, streams: int = 1) -> dict[Key, Sample]:
    """The best of each subject."""
    return bests(in_turns(subjects, rounds, requests, streams=streams))
