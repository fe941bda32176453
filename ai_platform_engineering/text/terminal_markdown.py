"""Markdown for a terminal: headings at the left, and tables that stay readable where they do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement, TableElement
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_MIN_COLUMN_WIDTH: Final = 8


class _LeftHeading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        self.text.stylize("bold")
        yield self.text


class _ReadableTable(TableElement):
    """A table; as one list of values per row where the columns would be too narrow to read."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = self._names()
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table) and self._is_squeezed(table, console, options):
                yield from self._records(names)
                continue
            if isinstance(table, Table):
                # What is too long goes on in the next line; the default would leave its end out.
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
        # Links are written out: not every terminal can follow them, and people want to see where they lead.
        super().__init__(text, code_theme="ansi_dark", hyperlinks=False)
