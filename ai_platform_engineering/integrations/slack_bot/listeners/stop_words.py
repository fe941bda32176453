"""What people are told who want a run to stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ai_platform_engineering.integrations.slack_bot.stop_outcome import StopOutcome

STOP_WORDS: Final[Mapping[StopOutcome, str]] = {
    "stopping": "Stopping it.",
    "already_over": "This is over already.",
    "not_stopped": "I could not stop it right now. Please try again in a moment.",
}
