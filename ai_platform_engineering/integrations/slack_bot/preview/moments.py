"""What people see, moment by moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.integrations.slack_bot.preview.workspace import Transcript


@dataclass(frozen=True, slots=True)
class Moment:
    at: float
    """Seconds since the beginning."""
    transcript: Transcript


def thinned(moments: Sequence[Moment], most: int) -> list[Moment]:
    """At most so many of them, the first and the last among them."""
    if len(moments) <= most:
        return list(moments)
    step = (len(moments) - 1) / (most - 1)
    return [moments[round(number * step)] for number in range(most)]
