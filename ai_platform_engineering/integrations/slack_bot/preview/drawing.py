"""A transcript in a terminal, drawn with rich: played moment by moment, or printed as a whole."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule as Line
from rich.segment import Segment, Segments
from rich.text import Text as Drawn

from ai_platform_engineering.integrations.slack_bot.preview.messages import (
    BlockPart,
    Part,
    PlanPart,
    SlackMessage,
    TaskCard,
    TextPart,
)
from ai_platform_engineering.integrations.slack_bot.preview.mrkdwn import Span, Spans, spans_of
from ai_platform_engineering.integrations.slack_bot.preview.shapes import (
    Control,
    Controls,
    Heading,
    Paragraph,
    Rule,
    Shape,
    shapes_of,
)
from ai_platform_engineering.integrations.slack_bot.preview.workspace import Moment, Transcript
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import CardStatus
from ai_platform_engineering.text.terminal_text import TerminalMarkdown, block_lines
from ai_platform_engineering.utils.characters import clean

Names = Mapping[str, str]

_SIGNS: Final[Mapping[CardStatus, tuple[str, str]]] = {
    "pending": ("○", "dim"),
    "in_progress": ("◐", "yellow"),
    "complete": ("✓", "green"),
    "error": ("✗", "red"),
}
_LOOKS: Final = {"plain": "reverse", "primary": "reverse green", "danger": "reverse red"}
_MENTION: Final = re.compile(r"<@(\w+)>")


def play(moments: Sequence[Moment], console: Console, names: Names, bot: str, speed: float) -> None:
    """Draw the moments `speed` times as fast as they happened. Only the end of the thread is on the screen."""
    begun = time.monotonic()
    with Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
        for moment in moments:
            time.sleep(max(0.0, begun + moment.at / speed - time.monotonic()))
            live.update(_last_screen(console, moment.transcript, names, bot), refresh=True)


def show(transcript: Transcript, console: Console, names: Names, bot: str) -> None:
    console.print(Segments(_joined(_lines(console, transcript, names, bot))), end="")


def _last_screen(console: Console, transcript: Transcript, names: Names, bot: str) -> Segments:
    return Segments(_joined(_lines(console, transcript, names, bot)[-max(1, console.height - 1) :]))


def _lines(console: Console, transcript: Transcript, names: Names, bot: str) -> list[list[Segment]]:
    return [line for block in transcript_blocks(transcript, names, bot) for line in block_lines(console, block)]


def _joined(lines: Sequence[Sequence[Segment]]) -> list[Segment]:
    return [segment for line in lines for segment in (*line, Segment.line())]


def transcript_blocks(transcript: Transcript, names: Names, bot: str) -> list[RenderableType]:
    """The messages, each with an empty line after it, and the status."""
    blocks = [block for message in transcript.messages for block in (*_message(message, names, bot), Drawn())]
    if transcript.status:
        blocks.append(Drawn(clean(f"  {names.get(bot, bot)} {transcript.status}"), style="dim italic"))
    return blocks


def _message(message: SlackMessage, names: Names, bot: str) -> Iterator[RenderableType]:
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
        case TextPart(text=text, mrkdwn=True):
            return [_prose(spans_of(text, names))]
        case TextPart(text=text):
            named = _MENTION.sub(lambda match: f"**@{names.get(match[1], match[1])}**", text)
            return [TerminalMarkdown(clean(named))]
        case PlanPart(title=title, cards=cards):
            heading = Drawn(clean(title), style="bold") if title else None
            return [Panel(Group(*map(_card, cards)), title=heading, title_align="left", border_style="dim")]
        case BlockPart(json=block):
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
        case Paragraph(spans, small):
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
