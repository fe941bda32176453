"""CPU that own code saves, compared with the library that it replaces: the same work, with the same server."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final

from benchmarks.effort import Effort, compared
from benchmarks.processes import started
from benchmarks.rows import Row
from benchmarks.subjects import Subject, agent, client, together, tool

LABELS: Final = {
    "delegation": "a delegation, the supervisor's side",
    "http-call": "a tool call over HTTP, the client's side",
    "memory-call": "a tool call in memory",
}
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
                for streams in effort.streams:
                    if streams <= _MAX_STREAMS:
                        rows += _rows(name, subjects, effort, streams)
    return rows


def _clients(what: str, url: str) -> dict[str, AbstractContextManager[Subject]]:
    return {"own": client(what, url), "library": client(f"{what}-library", url)}


def _rows(name: str, subjects: Mapping[str, Subject], effort: Effort, streams: int) -> list[Row]:
    found = compared(subjects, max(1, effort.rounds // 2), max(effort.calls // 4, streams), streams=streams)
    return [
        Row(
            f"own-code.{streams}.{name}.{way}",
            f"CPU of {LABELS[name]}, {streams} at once: {way}",
            found[way].cpu_ms,
            "ms",
        )
        for way in subjects
    ]
