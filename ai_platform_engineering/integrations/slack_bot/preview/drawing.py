"""A transcript for a terminal, as rich renderables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule as Line
from rich.text import Text as Drawn

from ai_platform_engineering.integrations.slack_bot.preview.messages import Block, Message, Part, Plan, TaskCard, Text
from ai_platform_engineering.integrations.slack_bot.preview.mrkdwn import Span, Spans, spans_of
from ai_platform_engineering.integrations.slack_bot.preview.shapes import (
    Control,
    Controls,
    Heading,
    Prose,
    Rule,
    Shape,
    shapes_of,
)
from ai_platform_engineering.integrations.slack_bot.preview.workspace import Transcript
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import CardStatus
from ai_platform_engineering.text.plain_text import clean
from ai_platform_engineering.text.terminal_markdown import TerminalMarkdown

Names = Mapping[str, str]

_SIGNS: Final[Mapping[CardStatus, tuple[str, str]]] = {
    "pending": ("○", "dim"),
    "in_progress": ("◐", "yellow"),
    "complete": ("✓", "green"),
    "error": ("✗", "red"),
}
_LOOKS: Final = {"plain": "reverse", "primary": "reverse green", "danger": "reverse red"}
_MENTION: Final = re.compile(r"<@(\w+)>")


def drawn(transcript: Transcript, names: Names, bot: str) -> list[RenderableType]:
    """The messages below each other, each with an empty line after it, and the status."""
    blocks = [block for message in transcript.messages for block in (*_message(message, names, bot), Drawn())]
    if transcript.status:
        blocks.append(Drawn(clean(f"  {names.get(bot, bot)} {transcript.status}"), style="dim italic"))
    return blocks


def _message(message: Message, names: Names, bot: str) -> Iterator[RenderableType]:
    style = "bold cyan" if message.author == bot else "bold magenta"
    head = Drawn(clean(names.get(message.author, message.author)), style=style)
    head.append(f"  {datetime.fromtimestamp(float(message.ts), UTC):%H:%M}", style="dim")
    remarks = {"only you can see this": message.ephemeral_for, "edited": message.edited, "cut off": message.expired}
    head.append("".join(f"  ({remark})" for remark, there in remarks.items() if there), style="dim")
    yield head
    if message.deleted:
        yield Padding(Drawn("This message was deleted.", style="dim"), (0, 0, 0, 2))
        return
    for part in message.parts:
        yield from (Padding(block, (0, 0, 0, 2)) for block in _part(part, names))
    for file in message.files:
        text = Drawn(clean(f"[{file.name}] {file.title}, {len(file.content):,} bytes"), style="blue")
        yield Padding(text, (0, 0, 0, 2))
    if message.streaming:
        yield Padding(Drawn("▌", style="dim"), (0, 0, 0, 2))


def _part(part: Part, names: Names) -> Iterable[RenderableType]:
    match part:
        case Text(text=text, mrkdwn=True):
            return [_prose(spans_of(text, names))]
        case Text(text=text):
            named = _MENTION.sub(lambda match: f"**@{names.get(match[1], match[1])}**", text)
            return [TerminalMarkdown(clean(named))]
        case Plan(title=title, cards=cards):
            heading = Drawn(clean(title), style="bold") if title else None
            return [Panel(Group(*map(_card, cards)), title=heading, title_align="left", border_style="dim")]
        case Block(json=block):
            return map(_shape, shapes_of(block, names))


def _card(card: TaskCard) -> RenderableType:
    sign, style = _SIGNS.get(card.status, ("?", ""))
    lines: list[RenderableType] = [Drawn.assemble((f"{sign} ", style), clean(card.title))]
    more = "\n".join(text.strip() for text in (card.details, card.output) if text.strip())
    if more:
        lines.append(Padding(Drawn(clean(more), style="dim"), (0, 0, 0, 2)))
    return Group(*lines)


def _shape(shape: Shape) -> RenderableType:
    match shape:
        case Heading(text):
            return Drawn(clean(text), style="bold")
        case Prose(spans, small):
            return _prose(spans, "dim" if small else "")
        case Rule():
            return Line(style="dim")
        case Controls(controls, label):
            asked = [Drawn(clean(label), style="bold")] if label else []
            return Group(*asked, Drawn("  ").join(map(_control, controls)))


def _control(control: Control) -> Drawn:
    label = clean(control.label)
    match control.look:
        case "choice":
            return Drawn(f"[{label} ▾]")
        case "entry":
            return Drawn(f"[{label or '...'}]", style="dim")
        case look:
            return Drawn(f" {label} ", style=_LOOKS[look])


def _prose(spans: Spans, style: str = "") -> Drawn:
    text = Drawn(style=style)
    for span in spans:
        text.append(clean(f"\n{span.text}\n" if span.block else span.text), style=_style(span))
        if span.link and span.link != span.text:
            text.append(clean(f" ({span.link})"), style="dim")
    return text


def _style(span: Span) -> str:
    wanted = {"bold": span.bold, "italic": span.italic, "strike": span.struck, "cyan": span.code, "blue": span.link}
    return " ".join(style for style, there in wanted.items() if there)
