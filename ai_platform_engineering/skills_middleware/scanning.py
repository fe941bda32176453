"""Suspicious content in the files of a skill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "critical"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a skill that people should know of. A skill with a critical finding is refused."""

    severity: Severity
    code: str
    message: str
    path: str
    line: int


def scan(files: Mapping[str, str]) -> tuple[Finding, ...]:
    """What is suspicious in the files of a skill, SKILL.md included, by path and line."""
    return ()
