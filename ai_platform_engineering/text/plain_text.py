"""Plain text: untrusted text on one line and in columns, and splitting of streamed Markdown into finished blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ai_platform_engineering.utils.characters import clean

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")


def one_line(text: str) -> str:
    return " ".join(clean(text).split())


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """One line per row, with aligned columns. Cells may be untrusted."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def split_finished(text: str) -> tuple[str, str]:
    """Split `text` into leading Markdown blocks that no further text can change, and the rest.

    A block is finished when an empty line and the first line of another block follow it, outside of fenced code.
    """
    boundary = position = 0
    fence: str | None = None
    after_blank = False
    for line in text.split("\n"):
        if fence is None and after_blank and line and not line[0].isspace():
            boundary = position
        if match := _FENCE.match(line):
            if fence is None:
                fence = match[1]
            elif match[1].startswith(fence):
                fence = None
        after_blank = not line.strip()
        position += len(line) + 1
    return text[:boundary], text[boundary:]
