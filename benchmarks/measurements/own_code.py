"""CPU that own code saves, compared with the library that it replaces: the same work, with the same server."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final

from benchmarks.effort import Effort, compared
from benchmarks.rows import Row
from benchmarks.subjects import Subject, delegation, http_call, together, tool

LABELS: Final = {
    "delegation": "a delegation, the supervisor's side",
    "http-call": "a tool call over HTTP, the client's side",
    "memory-call": "a tool call in memory",
}
_MAX_STREAMS: Final = 32
"""One process for the client and one for its server: more streams change nothing."""


def own_code(effort: Effort) -> list[Row]:
    wanted: dict[str, dict[str, AbstractContextManager[Subject]]] = {
        "delegation": {"own": delegation(library=False), "library": delegation(library=True)},
        "http-call": {"own": http_call(library=False), "library": http_call(library=True)},
        "memory-call": {"own": tool("memory"), "library": tool("fastmcp")},
    }
    rows: list[Row] = []
    for name, ways in wanted.items():
        with together(ways) as subjects:
            for streams in effort.streams:
                if streams <= _MAX_STREAMS:
                    rows += _rows(name, subjects, effort, streams)
    return rows


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
