"""How many requests a second one process answers, by how many are open at once."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

from benchmarks.effort import Effort, compared
from benchmarks.rows import Row
from benchmarks.subjects import Subject, bare, product, together

STREAMS: Final = (1, 8, 32)


def throughput(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    wanted: dict[str, AbstractContextManager[Subject]] = {"bare": bare(), "product": product()}
    with together(wanted) as subjects:
        yardstick, supervisor = subjects["bare"], subjects["product"]
        for streams in STREAMS:
            rounds, requests = max(1, effort.rounds // 2), max(effort.requests, streams)
            found = compared(subjects, rounds, requests, streams=streams)
            rows += [
                Row(
                    f"throughput.{streams}.bare",
                    f"Requests at {streams}: plain graph",
                    found["bare"].per_second,
                    "/s",
                    1.0,
                ),
                Row(
                    f"throughput.{streams}",
                    f"Requests at {streams}: product",
                    found["product"].per_second,
                    "/s",
                    found["product"].per_second / found["bare"].per_second,
                ),
            ]
        rows += [
            Row("memory.load.bare", "Resident after these: plain graph", yardstick.resident_mb(), "MB", 1.0),
            Row(
                "memory.load",
                "Resident after these: product",
                supervisor.resident_mb(),
                "MB",
                supervisor.resident_mb() / yardstick.resident_mb(),
            ),
        ]
    return rows
