"""A successful Web API call, and the content that it gives a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ai_platform_engineering.integrations.slack_bot.preview.messages import Part, TextPart, parts_of

TEXT_LIMIT: Final = 40_000
"""Slack truncates longer texts."""

Arguments = Mapping[str, Any]
Key = tuple[str, str]
"""Channel and ts of a message, or channel and thread_ts of a thread."""


@dataclass(frozen=True, slots=True)
class WebApiCall:
    method: str
    arguments: Arguments
    now: float
    new_id: str
    author: str

    def get(self, name: str) -> str:
        return str(self.arguments.get(name) or "")

    @property
    def key(self) -> Key:
        """The message that the call changes."""
        return self.get("channel"), self.get("ts")

    @property
    def thread(self) -> Key:
        return self.get("channel_id"), self.get("thread_ts")

    @property
    def replaces_content(self) -> bool:
        """Whether the call replaces blocks and text. An empty list of blocks removes them; a missing one does not."""
        return any(self.arguments.get(name) is not None for name in ("text", "blocks", "markdown_text"))


def content_of(arguments: Arguments) -> tuple[tuple[Part, ...], str]:
    """The visible parts of a message, and its notification text. Blocks hide the text."""
    text = str(arguments.get("text") or "")[:TEXT_LIMIT]
    if blocks := arguments.get("blocks"):
        return parts_of(blocks), text
    if markdown := arguments.get("markdown_text"):
        return (TextPart(markdown),), markdown
    return ((TextPart(text, mrkdwn=True),) if text else ()), text
