"""A Slack message as people see it: its parts in order, from a post or from a stream. Values only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ai_platform_engineering.integrations.slack_bot.thread_view.operations import CardStatus

BlockJson = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TaskCard:
    id: str
    title: str
    status: CardStatus = "pending"
    details: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class PlanPart:
    """Task cards with one title. A single card outside of a plan is a plan without a title."""

    title: str = ""
    cards: tuple[TaskCard, ...] = ()


@dataclass(frozen=True, slots=True)
class TextPart:
    """Markdown, or with `mrkdwn` text in Slack's own markup."""

    text: str
    mrkdwn: bool = False


@dataclass(frozen=True, slots=True)
class BlockPart:
    """Any other Block Kit block."""

    json: BlockJson

    @property
    def type(self) -> str:
        return str(self.json.get("type", ""))


Part = PlanPart | TextPart | BlockPart


@dataclass(frozen=True, slots=True)
class SharedFile:
    id: str
    name: str
    title: str = ""
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class SlackMessage:
    channel: str
    ts: str
    author: str
    thread_ts: str = ""
    """The first message of the thread; empty for a message in the channel itself."""
    parts: tuple[Part, ...] = ()
    notification: str = ""
    """The text that notifications show instead of blocks."""
    files: tuple[SharedFile, ...] = ()
    reactions: tuple[tuple[str, str], ...] = ()
    """Name of the emoji, and the person."""
    streamed: bool = False
    streaming_since: float | None = None
    expired: bool = False
    """Slack ended the stream before the bot did, and shows the message as cut off."""
    edited: bool = False
    deleted: bool = False
    ephemeral_for: str = ""
    """The only person who sees an ephemeral message."""

    @property
    def streaming(self) -> bool:
        return self.streaming_since is not None

    @property
    def text(self) -> str:
        """The text outside of plans and blocks. Text that was streamed before and after a plan is joined."""
        return ("" if self.streamed else "\n\n").join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def plan(self) -> str:
        return next((part.title for part in self.parts if isinstance(part, PlanPart) and part.title), "")

    @property
    def cards(self) -> tuple[TaskCard, ...]:
        return tuple(card for part in self.parts if isinstance(part, PlanPart) for card in part.cards)

    @property
    def blocks(self) -> tuple[BlockJson, ...]:
        return tuple(part.json for part in self.parts if isinstance(part, BlockPart))


def parts_of(blocks: Iterable[BlockJson]) -> tuple[Part, ...]:
    return tuple(_part(block) for block in blocks)


def _part(block: BlockJson) -> Part:
    match block.get("type"):
        case "markdown":
            return TextPart(str(block.get("text", "")))
        case "plan":
            return PlanPart(str(block.get("title", "")), tuple(map(_card, block.get("tasks", ()))))
        case "task_card":
            return PlanPart(cards=(_card(block),))
        case _:
            return BlockPart(block)


def _card(block: BlockJson) -> TaskCard:
    return TaskCard(
        id=str(block.get("task_id", "")),
        title=str(block.get("title", "")),
        status=block.get("status", "pending"),
        details=rich_text(block.get("details")),
        output=rich_text(block.get("output")),
    )


def rich_text(element: object) -> str:
    """The text of a rich text element, without its formatting."""
    match element:
        case {"type": "rich_text", "elements": list(lines)}:
            return "\n".join(map(rich_text, lines))
        case {"type": "rich_text_list", "elements": list(items)}:
            return "\n".join(f"• {rich_text(item)}" for item in items)
        case {"elements": list(pieces)}:
            return "".join(map(rich_text, pieces))
        case Mapping():
            return _word(element)
        case _:
            return ""


def _word(element: Mapping[Any, Any]) -> str:
    match element:
        case {"type": "emoji", "name": str(name)}:
            return f":{name}:"
        case {"type": "user", "user_id": str(user)}:
            return f"<@{user}>"
        case {"text": str(text)} | {"url": str(text)}:
            return text
        case _:
            return ""
