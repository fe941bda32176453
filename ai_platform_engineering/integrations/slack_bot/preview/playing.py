"""Moments in a terminal: each when its time has come, then the whole thread to scroll through."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console
from rich.live import Live
from rich.segment import Segment, Segments

from ai_platform_engineering.integrations.slack_bot.preview.drawing import Names, drawn
from ai_platform_engineering.integrations.slack_bot.preview.moments import Moment
from ai_platform_engineering.integrations.slack_bot.preview.workspace import Transcript
from ai_platform_engineering.text.terminal_lines import block_lines


def play(moments: Sequence[Moment], console: Console, names: Names, bot: str, speed: float) -> None:
    """Draw them `speed` times as fast as they were. What does not fit on the screen is above it."""
    begun = time.monotonic()
    with Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
        for moment in moments:
            time.sleep(max(0.0, begun + moment.at / speed - time.monotonic()))
            live.update(_lower_part(console, moment.transcript, names, bot), refresh=True)


def show(transcript: Transcript, console: Console, names: Names, bot: str) -> None:
    console.print(Segments(_joined(_lines(console, transcript, names, bot))), end="")


def _lower_part(console: Console, transcript: Transcript, names: Names, bot: str) -> Segments:
    return Segments(_joined(_lines(console, transcript, names, bot)[-max(1, console.height - 1) :]))


def _lines(console: Console, transcript: Transcript, names: Names, bot: str) -> list[list[Segment]]:
    return [line for block in drawn(transcript, names, bot) for line in block_lines(console, block)]


def _joined(lines: Sequence[Sequence[Segment]]) -> list[Segment]:
    return [segment for line in lines for segment in (*line, Segment.line())]
