"""Parses the progress of foreign agents, which is prose.

The lines are `🔧 Calling tool: **x**`, `✅ Tool **x** completed`, `❌ Tool **x** failed`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# All repetitions are bounded, because the texts are untrusted.
_GAP = r"\s{1,8}"
_SPEAKER = rf"(?:[^:*\n]{{1,60}}?:{_GAP})??"
_STARTED = re.compile(
    rf"🔧\s{{0,8}}{_SPEAKER}Calling{_GAP}(?:tool:?{_GAP}(?P<tool>.{{1,100}}?)|(?:agent{_GAP})?(?P<name>\S{{1,100}}?))(?:\.{{3}}|…)?",
    re.IGNORECASE,
)
_FINISHED = re.compile(
    rf"(?P<icon>[✅❌])\s{{0,8}}{_SPEAKER}(?:Tool{_GAP}(?P<tool>.{{1,100}}?)|(?P<name>\S{{1,100}}))"
    rf"{_GAP}(?:completed|failed)(?P<reason>.*)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Started:
    tool: str


@dataclass(frozen=True, slots=True)
class Finished:
    """`certain` is false for a line that may be prose, for example `✅ Deployment completed`."""

    tool: str
    ok: bool
    reason: str | None
    certain: bool


def read_line(line: str) -> Started | Finished | None:
    line = line.strip()
    if started := _STARTED.fullmatch(line):
        return Started(_plain(started["tool"] or started["name"]))
    if finished := _FINISHED.fullmatch(line):
        return Finished(
            tool=_plain(finished["tool"] or finished["name"]),
            ok=finished["icon"] == "✅",
            reason=finished["reason"].strip(" :.-–—") or None,
            certain=finished["tool"] is not None,
        )
    return None


def _plain(name: str) -> str:
    return name.strip("*`'\" ")
