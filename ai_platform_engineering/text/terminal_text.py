"""Text for a terminal, with rich: blocks as lines, and Markdown with left-aligned headings and readable tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement, TableElement
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

Lines = list[list[Segment]]

_MIN_COLUMN_WIDTH: Final = 8


def block_lines(console: Console, block: RenderableType) -> Lines:
    """The lines of `block` without empty lines around it.

    Trailing spaces are removed too: they would wrap when the terminal becomes narrower.
    """
    lines = [_stripped(line) for line in console.render_lines(block, pad=False)]
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    while len(lines) > 1 and not lines[0]:
        lines.pop(0)
    return lines


def _stripped(line: Sequence[Segment]) -> list[Segment]:
    segments = list(line)
    while segments and not segments[-1].text.strip():
        segments.pop()
    if segments:
        last = segments[-1]
        segments[-1] = Segment(last.text.rstrip(), last.style, last.control)
    return segments


class _LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold")
        yield self.text


class _ReadableTable(TableElement):
    """A table, or one list of values per row when the columns would be too narrow to read."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = self._names()
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table) and self._is_squeezed(table, console, options):
                yield from self._records(names)
                continue
            if isinstance(table, Table):
                # Long cells wrap; the default cuts them off.
                for column in table.columns:
                    column.overflow = "fold"
            yield table

    def _names(self) -> list[Text]:
        row = self.header.row if self.header is not None else None
        return [cell.content for cell in row.cells] if row is not None else []

    def _is_squeezed(self, table: Table, console: Console, options: ConsoleOptions) -> bool:
        wanted = Measurement.get(console, options.update(width=1000, max_width=1000), table).maximum
        return wanted > options.max_width and options.max_width < len(table.columns) * (_MIN_COLUMN_WIDTH + 2)

    def _records(self, names: list[Text]) -> Iterator[Padding | Text]:
        for number, row in enumerate(self.body.rows if self.body is not None else []):
            if number:
                yield Text()
            for index, cell in enumerate(row.cells):
                name = Text(f"{names[index].plain}: " if index < len(names) else "", style="bold")
                yield Padding(name + cell.content, (0, 0, 0, 1))


class TerminalMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "table_open": _ReadableTable,
    }

    def __init__(self, text: str) -> None:
        # Links are printed in full: not every terminal can open them, and readers want to see the address.
        super().__init__(text, code_theme="ansi_dark", hyperlinks=False)
