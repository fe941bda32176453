"""Progress that agents write as prose: `🔧 Calling tool: **x**`, `✅ Tool **x** completed`, `❌ Tool **x** failed`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WHO = r"(?:[^:*\n]{1,60}?:\s+)??"
_STARTED = re.compile(
    rf"🔧\s*{_WHO}Calling\s+(?:tool:?\s+(?P<tool>.+?)|(?:agent\s+)?(?P<name>\S+?))(?:\.{{3}}|…)?", re.I
)
_FINISHED = re.compile(
    rf"(?P<mark>[✅❌])\s*{_WHO}(?:Tool\s+(?P<tool>.+?)|(?P<name>\S+))\s+(?:completed|failed)(?P<reason>.*)", re.I
)


@dataclass(frozen=True, slots=True)
class Started:
    tool: str


@dataclass(frozen=True, slots=True)
class Finished:
    """`certain` unless the line could as well be prose: `✅ Deployment completed`."""

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
            ok=finished["mark"] == "✅",
            reason=finished["reason"].strip(" :.-–—") or None,
            certain=finished["tool"] is not None,
        )
    return None


def _plain(name: str) -> str:
    return name.strip("*`'\" ")
