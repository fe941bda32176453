"""The points where Markdown may be split, ranked by how little a split there disturbs the reader."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import Final, Literal

from ai_platform_engineering.integrations.slack_bot.markdown import fences, graphemes, tables
from ai_platform_engineering.integrations.slack_bot.markdown.fences import Fence

_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_BETWEEN_WORDS: Final = re.compile(r"[ \t]+|(?<=[。！？])")
_SENTENCE_ENDS: Final = ".!?。！？"
# At the start of a line, these characters would begin another kind of block.
_BLOCK_BEGINNINGS: Final = "`~#>-*+|"


class SplitKind(IntEnum):
    """From the worst to the best."""

    BELOW_HEADING = 0
    BETWEEN_WORDS = 1
    BETWEEN_SENTENCES = 2
    INSIDE_BLOCK = 3
    BETWEEN_LINES = 4
    BETWEEN_ITEMS = 5
    BETWEEN_PARAGRAPHS = 6


@dataclass(frozen=True, slots=True)
class SplitPoint:
    at: int
    kind: SplitKind


@dataclass(frozen=True, slots=True)
class _Line:
    at: int
    text: str
    role: Literal["prose", "opening", "code", "closing"]
    is_heading: bool

    @property
    def is_blank(self) -> bool:
        return not self.text.strip()


def split_points(text: str, start: int, stop: int) -> Iterator[SplitPoint]:
    """The split points after `start` and before `stop`: between lines, and between the words of the last line. They do
    not depend on the text from `stop` on."""
    lines = list(_lines(text[:stop], start))
    for above, below in pairwise(lines):
        kind = _between(above, below)
        if kind is not None and below.at < stop:
            yield SplitPoint(below.at, kind)
    if lines[-1].role != "opening":
        yield from _between_words(text[:stop], lines[-1].at)


def _lines(text: str, start: int) -> Iterator[_Line]:
    """The lines from `start` on. The last one may be incomplete."""
    fence = fences.open_at_end(text[:start])
    is_heading = False
    at = start
    for line in text[start:].split("\n"):
        end = at + len(line)
        if fence is None:
            fence = fences.opened_by(line)
            is_heading = _is_heading(line) if line.strip() else is_heading
            yield _Line(at, line, "opening" if fence else "prose", is_heading)
        elif fence.closed_by(line) or (end == len(text) and _may_close(fence, line)):
            fence, is_heading = None, False
            yield _Line(at, line, "closing", is_heading)
        else:
            yield _Line(at, line, "code", is_heading=False)
        at = end + 1


def _between(above: _Line, below: _Line) -> SplitKind | None:
    """None if a split would leave a code block without lines."""
    if above.role == "opening" or below.role == "closing":
        return None
    if below.role == "code" or (tables.may_be_header(above.text) and tables.may_be_header(below.text)):
        return SplitKind.INSIDE_BLOCK
    if above.is_heading:
        return SplitKind.BELOW_HEADING
    is_apart = above.is_blank or above.role == "closing" or below.role == "opening"
    if is_apart and below.text[:1].strip():
        return SplitKind.BETWEEN_PARAGRAPHS
    return SplitKind.BETWEEN_ITEMS if _ITEM.match(below.text) else SplitKind.BETWEEN_LINES


def _between_words(text: str, line: int) -> Iterator[SplitPoint]:
    for space in _BETWEEN_WORDS.finditer(text, line):
        at = space.end()
        if (
            line < space.start()
            and at < len(text)
            and text[at] not in _BLOCK_BEGINNINGS
            and graphemes.may_split(text, at)
        ):
            ends_sentence = text[space.start() - 1] in _SENTENCE_ENDS
            yield SplitPoint(at, SplitKind.BETWEEN_SENTENCES if ends_sentence else SplitKind.BETWEEN_WORDS)


def _is_heading(line: str) -> bool:
    """A line that ends with a colon counts as a heading."""
    return _HEADING.match(line) is not None or line.rstrip().endswith((":", ":**"))


def _may_close(fence: Fence, line: str) -> bool:
    return not line.strip(f" \t\r{fence.delimiter[0]}")
