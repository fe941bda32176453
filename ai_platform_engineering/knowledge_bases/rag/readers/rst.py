"""reStructuredText: what documentation in it uses, not all that it has. Nothing of what people read is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.readers import rst_directives, rst_tables
from ai_platform_engineering.knowledge_bases.rag.readers.decoding import decode
from ai_platform_engineering.knowledge_bases.rag.readers.plain import without_headings
from ai_platform_engineering.knowledge_bases.rag.readers.reading import Raw, Reading
from ai_platform_engineering.knowledge_bases.rag.readers.rst_inline import Inline
from ai_platform_engineering.knowledge_bases.rag.readers.titles import shortened, title_from_name, without_markup

_ADORNMENT: Final = re.compile(r"([!-/:-@\[-`{-~])\1{2,}$")
_EXPLICIT: Final = re.compile(r"\.\.(?: |$)")
_FOOTNOTE: Final = re.compile(r"\.\. \[(?P<label>[^\]]+)\] +(?P<text>.*)$")
_ITEM: Final = re.compile(r"(?P<marker>[-*+•‣]|(?:\d{1,4}|#)[.)]|\((?:\d{1,4}|#)\))(?P<space> +|$)")
_FIELD: Final = re.compile(r":(?P<name>(?![: ])[^:\n]*[^:\s]):(?: +(?P<text>.*))?$")
_LINE_BLOCK: Final = re.compile(r"\|(?: (?P<text>.*))?$")
_DEEPEST: Final = 30


def read(raw: Raw) -> Reading:
    text = decode(raw).expandtabs(8)
    document = _Document(Inline.of(text))
    markdown = document.blocks([line.rstrip() for line in text.split("\n")])
    return Reading(shortened(document.title or title_from_name(raw.name)), markdown)


@dataclass(slots=True)
class _Document:
    """One document while it is read: which adornment is which level shows as its titles come."""

    inline: Inline
    styles: list[str] = field(default_factory=list)
    title: str | None = None
    depth: int = 0

    def blocks(self, lines: Sequence[str]) -> str:
        if self.depth >= _DEEPEST:
            return rst_directives.fenced(lines)
        self.depth += 1
        try:
            return "\n\n".join(block for block in _Blocks(self, lines) if block)
        finally:
            self.depth -= 1

    def heading(self, title: str, style: str) -> str:
        if style not in self.styles:
            self.styles.append(style)
        level = min(self.styles.index(style) + 1, 6)
        words = " ".join(self.inline.markdown(title).split())
        if self.title is None:
            self.title = without_markup(words)
        return f"{'#' * level} {words}"


class _Blocks:
    """The blocks of some lines, as Markdown, one after the other."""

    def __init__(self, document: _Document, lines: Sequence[str]) -> None:
        self._document = document
        self._lines = lines
        self._at = 0

    def __iter__(self) -> Iterator[str]:
        while self._at < len(self._lines):
            if not self._line().strip():
                self._at += 1
            else:
                yield self._block()

    def _line(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._lines[at] if at < len(self._lines) else ""

    def _block(self) -> str:
        line = self._line()
        if line.startswith(" "):
            return rst_directives.quoted(self._document.blocks(self._indented()))
        for attempt in (self._title, self._explicit, self._table, self._list, self._special):
            block = attempt(line)
            if block is not None:
                return block
        return self._paragraph()

    def _indented(self) -> list[str]:
        """The indented lines from here on, without what they are all indented by."""
        start = self._at
        while self._at < len(self._lines) and (not self._line() or self._line().startswith(" ")):
            self._at += 1
        return _dedented(self._lines[start : self._at])

    def _title(self, line: str) -> str | None:
        below, furthest = self._line(1).strip(), self._line(2)
        if _ADORNMENT.match(line):
            if below and furthest == line:
                self._at += 3
                return self._document.heading(below, line[0] * 2)
            if not below and len(line) >= 4:
                self._at += 1
                return "---"
            return None
        adornment = self._line(1)
        if _ADORNMENT.match(adornment) and (len(adornment) >= len(line) or len(adornment) >= 4):
            self._at += 2
            return self._document.heading(line, adornment[0])
        return None

    def _explicit(self, line: str) -> str | None:
        if line.startswith("__ "):
            self._at += 1
            return ""
        if not _EXPLICIT.match(line):
            return None
        self._at += 1
        body = self._indented()
        directive = rst_directives.Directive.of(line, body)
        if directive is not None and not line.startswith(".. |"):
            return rst_directives.markdown(directive, self._document.inline, self._document.blocks)
        if footnote := _FOOTNOTE.match(line):
            return self._document.blocks([f"[{footnote['label']}] {footnote['text']}", *body])
        # A comment, or something that is defined for other places: nobody reads it here. An empty comment ends what is
        # before it, and what is indented after it is a quotation.
        return rst_directives.quoted(self._document.blocks(body)) if line == ".." and body[:1] == [""] else ""

    def _table(self, line: str) -> str | None:
        if rst_tables.GRID.match(line):
            lines = self._until_blank()
            rows = rst_tables.grid_rows(lines)
            return rst_directives.fenced(lines) if rows is None else self._rows(rows)
        if rst_tables.SIMPLE.match(line):
            lines = self._simple_table()
            return self._rows(rst_tables.simple_rows(lines)) if lines else None
        return None

    def _rows(self, rows: rst_tables.Rows) -> str:
        return rst_tables.table(rows, self._document.inline.markdown)

    def _simple_table(self) -> Sequence[str]:
        """Up to the border that a blank line, or the end, follows."""
        for at in range(self._at + 1, len(self._lines)):
            last = at + 1 == len(self._lines) or not self._lines[at + 1]
            if last and rst_tables.SIMPLE.match(self._lines[at]):
                start, self._at = self._at, at + 1
                return self._lines[start : at + 1]
        return ()

    def _list(self, line: str) -> str | None:
        if not _ITEM.match(line):
            return None
        items: list[str] = []
        number = 0
        while item := _ITEM.match(self._line()):
            number += 1
            marker = "- " if len(item["marker"]) == 1 else _number(item["marker"], number)
            self._at += 1
            text = self._document.blocks([self._lines[self._at - 1][item.end() :], *self._indented_here(item.end())])
            items.append(_item(marker, text))
        return _list(items)

    def _indented_here(self, width: int) -> list[str]:
        """The lines of an item after its first."""
        start = self._at
        while self._at < len(self._lines) and (not self._line() or self._line().startswith(" ")):
            self._at += 1
        lines = self._lines[start : self._at]
        least = min((len(line) - len(line.lstrip()) for line in lines if line), default=width)
        return [line[min(least, width) :] for line in lines]

    def _special(self, line: str) -> str | None:
        if line.startswith(">>> "):
            return rst_directives.fenced(self._until_blank(), "pycon")
        if _LINE_BLOCK.match(line):
            return self._line_block()
        if _FIELD.match(line):
            return self._fields()
        below = self._line(1)
        if below.startswith(" ") and not line.endswith("::"):
            return self._definitions()
        return None

    def _line_block(self) -> str:
        lines: list[str] = []
        while found := _LINE_BLOCK.match(self._line()):
            lines.append(self._document.inline.markdown((found["text"] or "").strip()))
            self._at += 1
        return "  \n".join(lines).strip()

    def _fields(self) -> str:
        items: list[str] = []
        while found := _FIELD.match(self._line()):
            self._at += 1
            text = self._document.blocks([found["text"] or "", *self._indented()])
            # Without a value it is an order to the program that builds the pages.
            if text:
                items.append(_item("- ", f"{found['name']}: {text}"))
        return _list(items)

    def _definitions(self) -> str:
        items: list[str] = []
        while self._line() and not self._line().startswith(" ") and self._line(1).startswith(" "):
            if _EXPLICIT.match(self._line()):
                break
            term = self._document.inline.markdown(self._line())
            self._at += 1
            items.append(_item("- ", f"{term}\n\n{self._document.blocks(self._indented())}".strip()))
        return _list(items)

    def _until_blank(self) -> Sequence[str]:
        start = self._at
        while self._line():
            self._at += 1
        return self._lines[start : self._at]

    def _paragraph(self) -> str:
        start = self._at
        self._at += 1
        while self._line() and not self._line().startswith(" "):
            self._at += 1
        text = "\n".join(self._lines[start : self._at])
        literal = text.endswith("::")
        if literal:
            text = text[:-1] if text[:-2].strip() and not text[-3].isspace() else text[:-2].rstrip()
        markdown = without_headings(self._document.inline.markdown(text)) if text.strip(":") else ""
        if not literal:
            return markdown
        return "\n\n".join(filter(None, (markdown, rst_directives.fenced(self._literal()))))

    def _literal(self) -> list[str]:
        """An indented block, or lines that are all quoted by the same sign."""
        at = self._at
        while self._at < len(self._lines) and not self._line():
            self._at += 1
        sign = self._line()[:1]
        if sign == " ":
            return self._indented()
        if not sign or sign.isalnum() or self._at == at or _EXPLICIT.match(self._line()):
            return []
        start = self._at
        while self._line().startswith(sign):
            self._at += 1
        return list(self._lines[start : self._at])


def _dedented(lines: Sequence[str]) -> list[str]:
    least = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
    return [line[least:] for line in lines]


def _number(marker: str, number: int) -> str:
    digits = marker.strip("().")
    return f"{int(digits) if digits.isdecimal() else number}. "


def _item(marker: str, text: str) -> str:
    indent = " " * len(marker)
    return marker + "\n".join(f"{indent}{line}" if line else "" for line in text.split("\n"))[len(marker) :]


def _list(items: Sequence[str]) -> str:
    return ("\n\n" if any("\n\n" in item for item in items) else "\n").join(items)
