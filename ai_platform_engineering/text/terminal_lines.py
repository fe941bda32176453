"""A block as the lines that a terminal shows of it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.segment import Segment

Lines = list[list[Segment]]


def block_lines(console: Console, block: RenderableType) -> Lines:
    """The lines of `block`, without empty ones around it.

    Spaces at the ends of lines go too: they would wrap when the terminal gets narrower.
    """
    lines = [_stripped(line) for line in console.render_lines(block, pad=False)]
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    while len(lines) > 1 and not lines[0]:
        lines.pop(0)
    return lines


def _stripped(line: Sequence[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        last = kept[-1]
        kept[-1] = Segment(last.text.rstrip(), last.style, last.control)
    return kept
