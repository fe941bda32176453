"""Resident memory per open stream: requests that wait for their agent's model behind an HTTP API.

The streams of a process are opened in steps and stay open, so that no step reuses memory that another one freed.
"""

from __future__ import annotations

from contextlib import ExitStack
from statistics import median
from typing import Final

from benchmarks.effort import Effort
from benchmarks.processes import Process, started
from benchmarks.provider.subjects import LABELS, subjects
from benchmarks.rows import Row
from benchmarks.scenario import CALLS_UNTIL_AGENT
from benchmarks.subjects import Subject, together

AGENT: Final = "remote-agent"
_WARM_UP: Final = 5
_LIVES: Final = 3


def memory(effort: Effort) -> list[Row]:
    """Rows for each number of streams above one: a single stream says more about the allocator than about itself."""
    sizes = [size for size in effort.streams if size > 1]
    found: list[dict[str, dict[int, list[float]]]] = []
    for _ in range(min(_LIVES, effort.provider_rounds)):
        with started("benchmarks.provider.server", "--pace=0") as server, together(subjects(server)) as running:
            found.append({name: _resident(subject, server, sizes) for name, subject in running.items()})

    def per_stream(name: str, size: int, *, first: int = 0) -> float:
        grown = (sum(life[name][size][first:]) - sum(life[name][0][first:]) for life in found)
        return median(grown) / size * 1000

    def at_rest(name: str) -> float:
        return median(sum(life[name][0]) for life in found)

    rows = [
        Row(
            f"provider.rest.{name}",
            f"Resident, no open stream: {label}",
            at_rest(name),
            "MB",
            at_rest(name) / at_rest("bare"),
        )
        for name, label in LABELS.items()
    ]
    for size in sizes:
        bare = per_stream("bare", size)
        for name, label in LABELS.items():
            value = per_stream(name, size)
            # Few streams may fit into memory that the process has already.
            ratio = value / bare if bare > 0 else None
            rows.append(Row(f"provider.{size}.{name}.memory", f"Open stream: {label}, {size} open", value, "KB", ratio))
        agent = per_stream("remote", size, first=1)
        rows.append(Row(f"provider.{size}.{AGENT}.memory", f"… the agent's process, {size} open", agent, "KB"))
    return rows


def _resident(subject: Subject, server: Process, sizes: list[int]) -> dict[int, list[float]]:
    """Megabytes of each process of the subject, by the number of open streams."""
    server.order({"reset": True})
    subject.load(_WARM_UP)
    server.order({"reset": True, "hold": True})
    found = {0: subject.resident_parts()}
    with ExitStack() as stack:
        for before, size in zip([0, *sizes], sizes, strict=False):
            stack.enter_context(subject.waiting(size - before))
            server.order({"until": size * CALLS_UNTIL_AGENT})
            found[size] = subject.resident_parts()
    return found
