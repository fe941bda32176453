"""What own code saves, compared with the library that it replaces: the same work, with the same server."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final

from benchmarks.effort import Effort, compared, in_turns
from benchmarks.measurements.faults import faults
from benchmarks.measurements.provider import round_count
from benchmarks.processes import started
from benchmarks.rows import Row
from benchmarks.samples import Sample, bests
from benchmarks.subjects import Subject, agent, client, product, together, tool

LABELS: Final = {
    "delegation": "a delegation, the supervisor's side",
    "http-call": "a tool call over HTTP, the client's side",
    "memory-call": "a tool call in memory",
    "request": "a request, with a model provider over HTTP",
}
STARTS: Final = {"own": "memory", "library": "fastmcp"}
_START: Final = (("seconds", "until ready", "s"), ("cpu", "CPU", "s"), ("memory", "resident", "MB"))
_MAX_STREAMS: Final = 32
"""One process for the client and one for its server: more streams change nothing."""


def own_code(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    with agent() as asked, started("benchmarks.tool_server", "http") as server:
        wanted: dict[str, dict[str, AbstractContextManager[Subject]]] = {
            "delegation": _clients("delegation", asked.url),
            "http-call": _clients("http-call", server.ready_line),
            "memory-call": {"own": tool("memory"), "library": tool("fastmcp")},
        }
        for name, ways in wanted.items():
            with together(ways) as subjects:
                for streams in _sizes(effort):
                    calls = max(effort.calls, 10 * streams)
                    found = compared(subjects, max(1, effort.rounds // 2), calls, streams=streams)
                    rows += _rows(name, found, streams)
    return [*rows, *_requests(effort), *faults(), *_starts(effort)]


def _requests(effort: Effort) -> list[Row]:
    """Whole requests, without traces of hooks and with those that LangChain prepares while tracing is off."""
    rows: list[Row] = []
    with started("benchmarks.provider.server") as model:
        ways = {
            "own": product(provider=model.url),
            "library": product(provider=model.url, options=["--prepare-traces"]),
        }
        with together(ways) as subjects:
            for streams in _sizes(effort):
                requests = max(effort.requests // 2, streams)
                rounds = in_turns(subjects, round_count(effort, streams), requests, streams=streams)
                rows += _rows("request", bests(rounds), streams)
    return rows


def _sizes(effort: Effort) -> list[int]:
    return [streams for streams in effort.streams if streams <= _MAX_STREAMS]


def _starts(effort: Effort) -> list[Row]:
    """The start of a process that has a tool in memory; both ways take turns."""
    taken: dict[str, list[tuple[float, float, float]]] = {way: [] for way in STARTS}
    for _ in range(effort.starts):
        for way, transport in STARTS.items():
            with tool(transport) as subject:
                process = subject.process
                taken[way].append((process.ready_after, process.cpu_seconds(), process.resident_mb()))
    return [
        Row(f"own-code.start.{way}.{what}", f"Start with a tool in memory, {label}: {way}", min(values), unit)
        for way, starts in taken.items()
        for (what, label, unit), values in zip(_START, zip(*starts, strict=True), strict=True)
    ]


def _clients(what: str, url: str) -> dict[str, AbstractContextManager[Subject]]:
    return {"own": client(what, url), "library": client(f"{what}-library", url)}


def _rows(name: str, found: Mapping[str, Sample], streams: int) -> list[Row]:
    return [
        Row(
            f"own-code.{streams}.{name}.{way}",
            f"CPU of {LABELS[name]}, {streams} at once: {way}",
            found[way].cpu_ms,
            "ms",
        )
        for way in found
    ]
