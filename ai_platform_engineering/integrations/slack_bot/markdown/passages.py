"""Prose, code and tables, told apart in a text of which the end may not be written yet.

What has been told apart stays so, whatever is written next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.integrations.slack_bot.markdown import fences, tables
from ai_platform_engineering.integrations.slack_bot.markdown.fences import Fence

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Prose:
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Whole lines, those with the fences, too. Code is finished when it is closed."""

    lines: Sequence[str]
    fence: Fence
    finished: bool

    @property
    def lead(self) -> str:
        return self.fence.lead

    @property
    def content(self) -> Sequence[str]:
        """The lines between the fences, as far to the left as these."""
        lines = self.lines[1:-1] if self.finished else self.lines[1:]
        return [_moved_left(line, self.fence.indent) for line in lines]


@dataclass(frozen=True, slots=True)
class Table:
    """Whole lines: the header, the dashes and the rows. A table is finished when something else has followed."""

    lines: Sequence[str]
    finished: bool

    @property
    def lead(self) -> str:
        header = self.lines[0]
        return "" if tables.may_be_header(header) else header

    @property
    def columns(self) -> int:
        return len(tables.cells(self.lines[0]))

    @property
    def rows(self) -> Sequence[str]:
        return self.lines[2:]

    @property
    def csv(self) -> str:
        """Every cell, those of the header first."""
        return tables.as_csv(tables.cells(line) for line in (self.lines[0], *self.rows))


Block = Code | Table
"""Its `lead`, the first line or the beginning of it, was prose until the block was recognised, and stays prose."""
Passage = Prose | Block


def passages(text: str, *, complete: bool) -> Iterator[Passage]:
    """What is certain, in order. Unless the text is complete this ends before whatever may still become something
    else: code and tables that are not finished, and lines that may begin them."""
    lines: list[str] = _LINE.findall(text)
    unfinished = lines.pop() if lines and not complete and not lines[-1].endswith("\n") else ""
    prose = at = 0
    while at < len(lines):
        block = _code(lines, at) or _table(lines, at)
        if block is None:
            at += 1
            continue
        yield Prose("".join(lines[prose:at]) + block.lead)
        if not block.finished and not complete:
            return
        yield block
        prose = at = at + len(block.lines)
    rest = lines[prose:]
    yield Prose("".join(rest if complete else _certain(rest, unfinished)))


def _code(lines: Sequence[str], at: int) -> Code | None:
    fence = fences.opened_by(lines[at])
    if fence is None:
        return None
    for closing in range(at + 1, len(lines)):
        if fence.closed_by(lines[closing]):
            return Code(lines[at : closing + 1], fence, finished=True)
    return Code(lines[at:], fence, finished=False)


def _table(lines: Sequence[str], at: int) -> Table | None:
    if at + 1 == len(lines) or not tables.begins(lines[at], lines[at + 1]):
        return None
    for after in range(at + 2, len(lines)):
        if not tables.is_row(lines[after]) or fences.opened_by(lines[after]):
            return Table(lines[at:after], finished=True)
    return Table(lines[at:], finished=False)


def _certain(lines: list[str], unfinished: str) -> list[str]:
    """The last lines of a text without an end that may begin code or a table."""
    if lines and tables.is_row(lines[-1]) and tables.may_be_dashes(unfinished):
        return lines[:-1] if tables.may_be_header(lines[-1]) else lines
    if not unfinished.strip() or tables.may_be_header(unfinished):
        return lines
    if fences.may_open(unfinished):
        unfinished = unfinished[: fences.mark_position(unfinished)]
        # White space alone belongs to the fence: a list item does not.
        return [*lines, unfinished] if unfinished.strip() else lines
    return [*lines, unfinished]


def _moved_left(line: str, columns: int) -> str:
    begin = min(columns, len(line) - len(line.lstrip(" ")))
    return line[begin:]
