"""Splits a text that may still be streaming into passages: prose, code and tables.

A passage that was returned once is not changed by further text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ai_platform_engineering.integrations.slack_bot.markdown import fences, tables
from ai_platform_engineering.integrations.slack_bot.markdown.fences import Fence

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_BEGINNING: Final = re.compile(r"```|~~~|\|")
"""Occurs in every line that opens code or is the header of a table."""
_AFTER_TABLE: Final = re.compile(r"^[^|\n]*$|```|~~~", re.MULTILINE)
"""A line that is not a row, or the start of a line that opens code."""


@dataclass(frozen=True, slots=True)
class Prose:
    text: str


@dataclass(frozen=True, slots=True)
class Code:
    """Whole lines including the fences; `between` is the range of the text between them. Closed code is finished."""

    text: str
    fence: Fence
    between: range
    finished: bool

    @property
    def lead(self) -> str:
        return self.fence.lead

    @property
    def line_count(self) -> int:
        """The number of lines between the fences."""
        begin, end = self.between.start, self.between.stop
        return self.text.count("\n", begin, end) + (end > begin and self.text[end - 1] != "\n")

    @property
    def content(self) -> str:
        """The lines between the fences, without the indentation of the fences."""
        content = self.text[self.between.start : self.between.stop]
        if not self.fence.indent:
            return content
        return "".join(_dedent(line, self.fence.indent) for line in _LINE.findall(content))


@dataclass(frozen=True, slots=True)
class Table:
    """Whole lines: the header, the dashes and the rows. A table is finished when another line follows it."""

    text: str
    finished: bool

    def lines(self, count: int | None = None) -> list[str]:
        """The first `count` lines, or all of them."""
        return [line[0] for line in islice(_LINE.finditer(self.text), count)]

    @property
    def lead(self) -> str:
        header = self._header
        return "" if tables.may_be_header(header) else header

    @property
    def columns(self) -> int:
        return len(tables.cells(self._header))

    @property
    def row_count(self) -> int:
        return self.text.count("\n") + (not self.text.endswith("\n")) - 2

    @property
    def csv(self) -> str:
        """The header and all rows as CSV."""
        header, _, *rows = self.lines()
        return tables.as_csv(map(tables.cells, (header, *rows)))

    @property
    def _header(self) -> str:
        return self.text[: self.text.index("\n") + 1]


Block = Code | Table
"""Its `lead` is the first line or the start of it. It was shown as prose before the block was known."""
Passage = Prose | Block


def passages(text: str, *, complete: bool) -> Iterator[Passage]:
    """The passages in order. Unless the text is complete, this stops before text that may still change its meaning:
    unfinished code and tables, and lines that may begin them."""
    # Called for every delta: only lines that may begin or end a block are examined one by one.
    end = len(text) if complete else text.rfind("\n") + 1
    prose = at = 0
    while found := _BEGINNING.search(text, at, end):
        at = max(at, text.rfind("\n", at, found.start()) + 1)
        block = _code(text, at, end) or _table(text, at, end)
        if block is None:
            at = _next_line(text, at, end)
            continue
        yield Prose(text[prose:at] + block.lead)
        if not block.finished and not complete:
            return
        yield block
        prose = at = at + len(block.text)
    rest = text[prose:end]
    yield Prose(rest if complete else _certain(rest, text[end:]))


def _next_line(text: str, at: int, end: int) -> int:
    return text.find("\n", at, end) + 1 or end


def _code(text: str, at: int, end: int) -> Code | None:
    begin = _next_line(text, at, end)
    fence = fences.opened_by(text[at:begin])
    if fence is None:
        return None
    delimiter = text.find(fence.delimiter, begin, end)
    first = max(begin, text.rfind("\n", begin, delimiter) + 1)
    for line in fence.closings.finditer(text, first, end) if delimiter >= 0 else ():
        after = _next_line(text, line.end(), end)
        if fence.closed_by(line[0]):
            return Code(text[at:after], fence, range(begin - at, line.start() - at), finished=True)
    return Code(text[at:end], fence, range(begin - at, end - at), finished=False)


def _table(text: str, at: int, end: int) -> Table | None:
    dashes = _next_line(text, at, end)
    row = _next_line(text, dashes, end)
    if dashes == end or not tables.begins(text[at:dashes], text[dashes:row]):
        return None
    for other in _AFTER_TABLE.finditer(text, row, end):
        begin = max(row, text.rfind("\n", row, other.start()) + 1)
        line = text[begin : _next_line(text, begin, end)]
        if line and (not tables.is_row(line) or fences.opened_by(line)):
            return Table(text[at:begin], finished=True)
    return Table(text[at:end], finished=False)


def _certain(text: str, unfinished: str) -> str:
    """The end of a text (whole lines and an unfinished one) without a part that may begin code or a table."""
    last = text[text.rfind("\n", 0, -1) + 1 :]
    if tables.is_row(last) and tables.may_be_dashes(unfinished):
        return text.removesuffix(last) if tables.may_be_header(last) else text
    if not unfinished.strip() or tables.may_be_header(unfinished):
        return text
    if fences.may_open(unfinished):
        unfinished = unfinished[: fences.delimiter_position(unfinished)]
        # Only white space belongs to the fence; a list item is prose.
        return text + unfinished if unfinished.strip() else text
    return text + unfinished


def _dedent(line: str, columns: int) -> str:
    begin = min(columns, len(line) - len(line.lstrip(" ")))
    return line[begin:]
