"""What a bot must not do, and did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "rate_limit",  # more calls than Slack allows
    "too_early",  # asked again before `Retry-After` had passed
    "refused",  # a call that no workspace would take
    "unknown_argument",
    "overlap",  # calls about one message were under way at the same time: their order is anybody's guess
    "truncated",  # Slack cut a text off
    "late_ack",  # no answer to Slack within three seconds
    "no_ack",  # none that Slack could use
    "unknown_ack",  # an answer to nothing that Slack has sent
]


@dataclass(frozen=True, slots=True)
class Violation:
    time: float
    kind: Kind
    what: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}" + (f" ({self.detail})" if self.detail else "")
