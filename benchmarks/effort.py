"""How much is done for a number: enough for one that can be trusted, or just enough to see that it can be had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from benchmarks.samples import Sample, bests
from benchmarks.subjects import Loadable

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Effort:
    """`rounds` of `requests` each; `calls` of a tool each; `starts` of a process; `conversations` of full length;
    catalogs with so many `skills`; `provider_rounds` with each number of `streams` at once; `store_rounds` of all
    stores, `kills` of a process that runs a task, and `subscriptions` to a task.

    For the knowledge base: so many `pages` of documentation and `readmes` of packages (None for all), so many chunks
    `embedded`, and `queries` of a store that has been given so many `chunks`.
    """

    rounds: int
    requests: int
    calls: int
    starts: int
    conversations: int
    words: int
    idle_streams: int
    agents: tuple[int, ...]
    turns: tuple[int, ...]
    skills: tuple[int, ...]
    provider_rounds: int
    streams: tuple[int, ...]
    store_rounds: int
    kills: int
    subscriptions: int
    pages: int | None
    readmes: int | None
    embedded: int
    queries: int
    chunks: tuple[int, ...]
    chunks_in_postgres: tuple[int, ...]


FULL: Final = Effort(
    rounds=20,
    requests=10,
    calls=200,
    starts=8,
    conversations=12,
    words=100,
    idle_streams=1000,
    agents=(4, 16, 64),
    turns=(1, 10, 50),
    skills=(10, 500, 5_000),
    provider_rounds=5,
    streams=(1, 8, 32, 128),
    store_rounds=8,
    kills=7,
    subscriptions=50,
    pages=None,
    readmes=None,
    embedded=400,
    queries=175,
    chunks=(1_000, 10_000, 100_000),
    chunks_in_postgres=(1_000, 10_000),
)
QUICK: Final = Effort(
    rounds=1,
    requests=2,
    calls=5,
    starts=1,
    conversations=1,
    words=20,
    idle_streams=20,
    agents=(2, 4),
    turns=(1, 2),
    skills=(5, 20),
    provider_rounds=1,
    streams=(1, 2),
    store_rounds=1,
    kills=1,
    subscriptions=2,
    pages=2,
    readmes=1,
    embedded=4,
    queries=5,
    chunks=(20, 50),
    chunks_in_postgres=(20, 50),
)


def in_turns(
    subjects: Mapping[Key, Loadable], rounds: int, requests: int, *, streams: int = 1
) -> list[dict[Key, Sample]]:
    """Rounds in which every subject has its turn, so that a busy moment of the machine does not fall on one only; each
    round begins with another one, as it matters whose turn was before. A single round is not worth a warm-up."""
    names = [*subjects]
    if rounds > 1:
        for name in names:
            subjects[name].load(requests, streams=streams)
    found = []
    for number in range(rounds):
        first = number % len(names)
        turns = [*names[first:], *names[:first]]
        found.append({name: subjects[name].load(requests, streams=streams) for name in turns})
    return found


def compared(subjects: Mapping[Key, Loadable], rounds: int, requests: int, *, streams: int = 1) -> dict[Key, Sample]:
    """The best of each subject."""
    return bests(in_turns(subjects, rounds, requests, streams=streams))
