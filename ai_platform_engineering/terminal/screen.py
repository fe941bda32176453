"""Output to a terminal: the transcript scrolls, and the live region below it is redrawn in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.segment import ControlType, Segment, Segments

from ai_platform_engineering.events import Event
from ai_platform_engineering.events_json import Asked
from ai_platform_engineering.terminal.rendering import Symbols, live_blocks, question, symbols_for, transcript_blocks
from ai_platform_engineering.terminal.view import TerminalNotice, View
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.text.terminal_text import Lines, block_lines

_SPACE_BELOW: Final = 1


class Screen:
    """Draws runs, one after the other. `with_forms`: also print forms, which a dialogue would show otherwise."""

    def __init__(self, console: Console, *, with_forms: bool = True) -> None:
        self._console = console
        self._with_forms = with_forms
        self._symbols: Symbols = symbols_for(console.encoding)
        self._printed = 0
        self._region: Lines = []
        self._size = console.size
        self._frame = 0

    def begin(self, asked: Asked, *, typed: bool, view: View) -> None:
        self._printed = len(view.transcript)
        if not typed:
            self._write([question(one_line(asked.question), self._symbols)], [])
        if not view.transcript:
            self._console.print()

    def take(self, item: Event | TerminalNotice) -> None:
        """Single events are not shown."""

    def draw(self, view: View) -> None:
        self._frame += 1
        new = self._new_blocks(view)
        region = live_lines(self._console, view, self._symbols, self._frame)
        if new or region != self._region or self._console.size != self._size:
            self._write(new, region)

    def end(self, view: View) -> None:
        """Print the rest of the transcript and erase the live region."""
        new = self._new_blocks(view)
        self._write(new, [])
        self._console.print()

    def _new_blocks(self, view: View) -> list[RenderableType]:
        after, self._printed = self._printed, len(view.transcript)
        return transcript_blocks(view.transcript, self._symbols, after, with_forms=self._with_forms)

    def _write(self, blocks: Sequence[RenderableType], region: Lines) -> None:
        lines = [line for block in blocks for line in block_lines(self._console, block)]
        size = self._console.size
        if lines or len(region) != len(self._region) or size != self._size:
            segments = [*_erased(rows(self._region, size.width)), *_joined([*lines, *region])]
        else:
            segments = _changed(self._region, region)
        # One write for everything, or the terminal flickers.
        self._console.print(Segments(segments), end="", crop=False)
        self._region, self._size = region, size


def _erased(count: int) -> list[Segment]:
    """Erase line by line: some terminals copy a region that is cleared at once into their scrollback."""
    if not count:
        return []
    return [_control(f"\r\x1b[{count}A" + "\x1b[2K\x1b[B" * count + f"\x1b[{count}A")]


def _joined(lines: Lines) -> list[Segment]:
    return [segment for line in lines for segment in (*line, Segment.line())]


def _changed(before: Lines, after: Lines) -> list[Segment]:
    """Redraw only the changed lines in place. Nothing scrolls, also after a resize."""
    segments = [_control(f"\r\x1b[{len(before)}A")]
    for old, new in zip(before, after, strict=True):
        if old != new:
            segments += [_control("\x1b[2K"), *new]
        segments.append(_control("\r\x1b[B"))
    return segments


def _control(sequence: str) -> Segment:
    return Segment(sequence, None, [(ControlType.CURSOR_UP, 0)])


def live_lines(console: Console, view: View, symbols: Symbols, frame: int) -> Lines:
    """The live region, never taller than the screen: the text, the calls and the plan are each cut at the top."""
    height = max(3, console.height - _SPACE_BELOW)
    texts, calls, plan = live_blocks(view, symbols, frame)
    share = max(2, height // 3)
    plan_lines = _last(_lines(console, plan), share)
    call_lines = _last(_lines(console, calls), share)
    pieces = [piece for piece in (call_lines, plan_lines) if piece]
    left = height - sum(len(piece) + 1 for piece in pieces) - 1
    if text_lines := _last(_lines(console, texts), max(1, left)):
        pieces.insert(0, text_lines)
    region: Lines = []
    for piece in pieces:
        # An empty line before each piece; the first one separates the region from the transcript.
        region += [[], *piece] if region or view.transcript else piece
    return region[-height:]


def rows(lines: Iterable[Sequence[Segment]], width: int) -> int:
    """The number of rows that `lines` take on a terminal of this width."""
    return sum(max(1, -(-sum(segment.cell_length for segment in line) // width)) for line in lines)


def _lines(console: Console, blocks: Iterable[RenderableType]) -> Lines:
    return [line for block in blocks for line in block_lines(console, block)]


def _last(lines: Lines, count: int) -> Lines:
    return lines if len(lines) <= count else [[Segment("...")], *lines[len(lines) - count + 1 :]]
