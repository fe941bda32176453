"""A call of the Web API, as it came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class ApiCall:
    method: str
    arguments: dict[str, Any]
    token: str
    time: float
    answer: Mapping[str, Any] | None = None
    """What Slack answered; None while it is under way, or if the answer was never sent."""

    @property
    def ok(self) -> bool:
        return bool(self.answer and self.answer.get("ok"))

    @property
    def error(self) -> str:
        return str(self.answer.get("error", "")) if self.answer else ""

    def get(self, name: str) -> str:
        return str(self.arguments.get(name) or "")
