"""A terminal as output: facts scroll away, and below them is a small region that is drawn again while it changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.segment import ControlType, Segment, Segments

from ai_platform_engineering.events import Event
from ai_platform_engineering.events_json import Asked
from ai_platform_engineering.terminal.rendering import Marks, fact_blocks, live_blocks, marks_for, question
from ai_platform_engineering.terminal.view import Notice, View
from ai_platform_engineering.text.plain_text import one_line
from ai_platform_engineering.text.terminal_lines import Lines, block_lines

_SPACE_BELOW: Final = 1


class Screen:
    """Draws views of one run after the other. `with_forms` where nobody else shows the forms."""

    def __init__(self, console: Console, *, with_forms: bool = True) -> None:
        self._console = console
        self._with_forms = with_forms
        self._marks: Marks = marks_for(console.encoding)
        self._printed = 0
        self._region: Lines = []
        self._size = console.size
        self._frame = 0

    def begin(self, asked: Asked, *, typed: bool, view: View) -> None:
        self._printed = len(view.facts)
        if not typed:
            self._write([question(one_line(asked.question), self._marks)], [])
        if not view.facts:
            self._console.print()

    def take(self, item: Event | Notice) -> None:
        """Nothing is shown of single events."""

    def draw(self, view: View) -> None:
        self._frame += 1
        new = self._new_blocks(view)
        region = live_lines(self._console, view, self._marks, self._frame)
        if new or region != self._region or self._console.size != self._size:
            self._write(new, region)

    def end(self, view: View) -> None:
        """Leave what was drawn as it is, without the changing part."""
        new = self._new_blocks(view)
        self._write(new, [])
        self._console.print()

    def _new_blocks(self, view: View) -> list[RenderableType]:
        after, self._printed = self._printed, len(view.facts)
        return fact_blocks(view.facts, self._marks, after, with_forms=self._with_forms)

    def _write(self, blocks: Sequence[RenderableType], region: Lines) -> None:
        lines = [line for block in blocks for line in block_lines(self._console, block)]
        size = self._console.size
        if lines or len(region) != len(self._region) or size != self._size:
            segments = [*_erased(rows(self._region, size.width)), *_joined([*lines, *region])]
        else:
            segments = _changed(self._region, region)
        # One write for all of it: a terminal that gets it in pieces flickers.
        self._console.print(Segments(segments), end="", crop=False)
        self._region, self._size = region, size


def _erased(count: int) -> list[Segment]:
    """Line by line: some terminals keep a copy of what is cleared as a whole."""
    if not count:
        return []
    return [_control(f"\r\x1b[{count}A" + "\x1b[2K\x1b[B" * count + f"\x1b[{count}A")]


def _joined(lines: Lines) -> list[Segment]:
    return [segment for line in lines for segment in (*line, Segment.line())]


def _changed(before: Lines, after: Lines) -> list[Segment]:
    """Only the lines that changed, each in its place. Nothing scrolls, whatever size the terminal has by now."""
    segments = [_control(f"\r\x1b[{len(before)}A")]
    for old, new in zip(before, after, strict=True):
        if old != new:
            segments += [_control("\x1b[2K"), *new]
        segments.append(_control("\r\x1b[B"))
    return segments


def _control(sequence: str) -> Segment:
    return Segment(sequence, None, [(ControlType.CURSOR_UP, 0)])


def live_lines(console: Console, view: View, marks: Marks, frame: int) -> Lines:
    """The changing part, never taller than the screen: of each of its pieces the end is what counts."""
    height = max(3, console.height - _SPACE_BELOW)
    texts, calls, plan = live_blocks(view, marks, frame)
    share = max(2, height // 3)
    plan_lines = _last(_lines(console, plan), share)
    call_lines = _last(_lines(console, calls), share)
    pieces = [piece for piece in (call_lines, plan_lines) if piece]
    left = height - sum(len(piece) + 1 for piece in pieces) - 1
    if text_lines := _last(_lines(console, texts), max(1, left)):
        pieces.insert(0, text_lines)
    region: Lines = []
    for piece in pieces:
        # An empty line before each, also the first: it parts the region from what was printed.
        region += [[], *piece] if region or view.facts else piece
    return region[-height:]


def rows(lines: Iterable[Sequence[Segment]], width: int) -> int:
    """How many rows `lines` fill on a terminal that is `width` wide by now."""
    return sum(max(1, -(-sum(segment.cell_length for segment in line) // width)) for line in lines)


def _lines(console: Console, blocks: Iterable[RenderableType]) -> Lines:
    return [line for block in blocks for line in block_lines(console, block)]


def _last(lines: Lines, count: int) -> Lines:
    return lines if len(lines) <= count else [[Segment("...")], *lines[len(lines) - count + 1 :]]
