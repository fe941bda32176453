"""Requests per second of `platform-engineer serve` with one worker process and with two."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from benchmarks.databases import DATABASE, DatabaseServer, postgres
from benchmarks.effort import Effort, in_turns
from benchmarks.processes import Process, started
from benchmarks.rows import Row
from benchmarks.samples import Sample, bests, middle_ratio
from benchmarks.stores.storages import SHARED, storage_settings
from benchmarks.subjects import Served, command, together
from benchmarks.watched import Watched

LABELS: Final = {1: "one worker", 2: "two workers"}
SHARES: Final = {"workers": "Worker processes", DATABASE: "Postgres", "model": "Model's server", "client": "Client"}
MAX_STREAMS: Final = 64
"""Each request waits for its model for about a second: with half as many, two workers would often wait for requests."""
REQUESTS_PER_STREAM: Final = 4
"""At the end of a round the streams run out of requests one by one, and the workers have less to do. The more requests
a round has, the less that counts."""


def workers(effort: Effort) -> list[Row]:
    with started("benchmarks.provider.server") as model, postgres() as server:
        if server is None:
            return []
        with together({count: _serving(count, server, model) for count in LABELS}) as found:
            watched = {
                count: Watched(
                    Served(process),
                    {
                        "workers": process.cpu_seconds,
                        "model": model.cpu_seconds,
                        "client": time.process_time,
                        **server.clocks(),
                    },
                )
                for count, process in found.items()
            }
            return _rows(watched, effort)


@contextmanager
def _serving(count: int, server: DatabaseServer, model: Process) -> Iterator[Process]:
    with (
        storage_settings(SHARED, {"postgres": server}) as settings,
        command(model.url, settings, f"--workers={count}") as process,
    ):
        yield process


def _rows(watched: dict[int, Watched], effort: Effort) -> list[Row]:
    streams = min(MAX_STREAMS, max(effort.streams))
    rounds = in_turns(watched, effort.provider_rounds, REQUESTS_PER_STREAM * streams, streams=streams)
    found = bests(rounds)
    rows: list[Row] = []
    for count, label in LABELS.items():
        rows += [
            Row(f"workers.{count}", f"Requests at {streams}: {label}", found[count].per_second, "/s"),
            *(
                Row(f"workers.{count}.{name}", f"{what}: {label}", watched[count].share(name) * 100, "%")
                for name, what in SHARES.items()
                if name in watched[count].clocks
            ),
        ]
    ratio = middle_ratio(rounds, 2, to=1, of=_per_second)
    return [*rows, Row("workers.ratio", "Requests per second: two workers compared with one", ratio, "x")]


def _per_second(taken: Sample) -> float:
    return taken.per_second
