"""Text for a terminal, with rich: blocks as lines, and Markdown with left-aligned headings and readable tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement, TableElement
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ai_platform_engineering.utils.characters import clean

Lines = list[list[Segment]]

_MIN_COLUMN_WIDTH: Final = 8
_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
_COMMENT: Final = re.compile(r"<!--.*-->", re.DOTALL)


def block_lines(console: Console, block: RenderableType) -> Lines:
    """The lines of `block` without empty lines around it, and without characters that control the terminal.

    Trailing spaces are removed too: they would wrap when the terminal becomes narrower.
    """
    lines = [_stripped(map(_cleaned, line)) for line in console.render_lines(block, pad=False)]
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    while len(lines) > 1 and not lines[0]:
        lines.pop(0)
    return lines


def _cleaned(segment: Segment) -> Segment:
    """Markdown can write any character as a reference, such as `&#x202e;`, so the rendered text is cleaned."""
    text = clean(segment.text)
    return segment if text == segment.text else Segment(text, segment.style, segment.control)


def _stripped(line: Iterable[Segment]) -> list[Segment]:
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
        self.parsed = [*_with_html_as_text(self.parsed)]


def _with_html_as_text(tokens: Sequence[Token]) -> Iterator[Token]:
    """rich leaves HTML out, and with it every `<name>` in an answer. It is shown as it is written, but for line breaks
    and comments."""
    for token in tokens:
        if token.children:
            token.children = [*_with_html_as_text(token.children)]
        match token.type:
            case "html_inline" if _BREAK.fullmatch(token.content):
                yield Token("hardbreak", "br", 0)
            case "html_inline" | "html_block" if _COMMENT.fullmatch(token.content.strip()):
                pass
            case "html_inline":
                yield Token("text", "", 0, content=token.content)
            case "html_block":
                written = Token("text", "", 0, content=token.content.rstrip("\n"))
                yield Token("paragraph_open", "p", 1, block=True)
                yield Token("inline", "", 0, content=written.content, children=[written])
                yield Token("paragraph_close", "p", -1, block=True)
            case _:
                yield token
