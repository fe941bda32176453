"""Requests per second of `platform-engineer serve` with one worker process and with two."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from benchmarks.computing import Computing, computing
from benchmarks.databases import DATABASE, DatabaseServer, postgres
from benchmarks.effort import Effort, in_turns
from benchmarks.processes import Process, started
from benchmarks.rows import Row
from benchmarks.samples import Sample, bests, middle_ratio
from benchmarks.stores.storages import SHARED, storage_settings
from benchmarks.subjects import Loadable, Served, command, together
from benchmarks.watched import Watched

LABELS: Final = {1: "one worker", 2: "two workers"}
SHARES: Final = {"workers": "Worker processes", DATABASE: "Postgres", "model": "Model's server", "client": "Client"}
MAX_STREAMS: Final = 64
"""Each request waits for its model for about a second: with half as many, two workers would often wait for requests."""
REQUESTS_PER_STREAM: Final = 5
_WORKERS: Final = "workers"
_COMPUTING: Final = "computing"


def workers(effort: Effort) -> list[Row]:
    with started("benchmarks.provider.server") as model, postgres() as server:
        if server is None:
            return []
        with (
            together({count: _serving(count, server, model) for count in LABELS}) as found,
            together({count: computing(count) for count in LABELS}) as machine,
        ):
            watched = {
                count: Watched(
                    Served(process, steady=True),
                    {
                        "workers": process.cpu_seconds,
                        "model": model.cpu_seconds,
                        "client": time.process_time,
                        **server.clocks(),
                    },
                )
                for count, process in found.items()
            }
            return _rows(watched, machine, effort)


@contextmanager
def _serving(count: int, server: DatabaseServer, model: Process) -> Iterator[Process]:
    with (
        storage_settings(SHARED, {"postgres": server}) as settings,
        command(model.url, settings, f"--workers={count}") as process,
    ):
        yield process


def _rows(watched: Mapping[int, Watched], machine: Mapping[int, Computing], effort: Effort) -> list[Row]:
    streams = min(MAX_STREAMS, max(effort.streams))
    # The cores of a virtual machine are not equally fast at all times.
    subjects: dict[tuple[str, int], Loadable] = {
        **{(_WORKERS, count): subject for count, subject in watched.items()},
        **{(_COMPUTING, count): subject for count, subject in machine.items()},
    }
    rounds = in_turns(subjects, effort.provider_rounds, REQUESTS_PER_STREAM * streams, streams=streams)
    found = bests(rounds)
    rows: list[Row] = []
    for count, label in LABELS.items():
        rows += [
            Row(f"workers.{count}", f"Requests at {streams}: {label}", found[_WORKERS, count].per_second, "/s"),
            *(
                Row(f"workers.{count}.{name}", f"{what}: {label}", watched[count].share(name) * 100, "%")
                for name, what in SHARES.items()
                if name in watched[count].clocks
            ),
        ]
    cores, ratio = (middle_ratio(rounds, (kind, 2), to=(kind, 1), of=_per_second) for kind in (_COMPUTING, _WORKERS))
    return [
        *rows,
        Row("workers.cores", "Work per second: two processes that only compute compared with one", cores, "x"),
        Row("workers.ratio", "Requests per second: two workers compared with one", ratio, "x"),
    ]


def _per_second(taken: Sample) -> float:
    return taken.per_second
