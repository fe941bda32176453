"""A Web API call that Slack has done, and what a message is given by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ai_platform_engineering.integrations.slack_bot.preview.messages import Part, Text, parts_of

TEXT_LIMIT: Final = 40_000
"""What is longer, Slack cuts off."""

Arguments = Mapping[str, Any]
Key = tuple[str, str]
"""A channel, and a message in it or the first one of a thread."""


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    arguments: Arguments
    now: float
    made: str
    author: str

    def get(self, name: str) -> str:
        return str(self.arguments.get(name) or "")

    @property
    def key(self) -> Key:
        """The message that it is about."""
        return self.get("channel"), self.get("ts")

    @property
    def thread(self) -> Key:
        return self.get("channel_id"), self.get("thread_ts")

    @property
    def replaces_content(self) -> bool:
        """Blocks stay as they are unless there are others or a text; an empty list takes them away."""
        return any(self.arguments.get(name) is not None for name in ("text", "blocks", "markdown_text"))


def content_of(arguments: Arguments) -> tuple[tuple[Part, ...], str]:
    """What a message shows, and its notification. Where there are blocks, the text is not shown."""
    text = str(arguments.get("text") or "")[:TEXT_LIMIT]
    if blocks := arguments.get("blocks"):
        return parts_of(blocks), text
    if markdown := arguments.get("markdown_text"):
        return (Text(markdown),), markdown
    return ((Text(text, mrkdwn=True),) if text else ()), text
