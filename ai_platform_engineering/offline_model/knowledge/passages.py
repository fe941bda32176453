"""Passages: a Markdown document split into quotable pieces, each with the headings above it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Literal

PassageKind = Literal["prose", "item", "pointer", "row", "code", "procedure"]

HEADING = re.compile(r"^ {0,3}(?P<hashes>#{1,6})\s+(?P<title>.*?)\s*#*\s*$")
FENCE = re.compile(r"^\s*(?P<fence>`{3,}|~{3,})(?P<language>[^`]*)$")
ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,4}[.)])\s+(?P<text>.*)$")
_RULE = re.compile(r"^\s*\|?[\s:|-]*-[\s:|-]*$")
_IMAGE = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)")
LINK = re.compile(r"\[(?P<text>[^\]\n]+)\]\([^)\n]*\)")
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?:[\"”’')\]]*)\s+(?=[A-Z`\"“‘'(\[*_<\d/])")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_DIAGRAMS = frozenset({"mermaid", "plantuml", "dot", "graphviz"})
"""Languages of diagrams, whose source is not quoted."""
_LONG_CELL = 5
"""A table cell with at least this many words is a sentence, not a value."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, a list item (a `pointer` begins with a link), a table row or a code block. A procedure is a whole
    section. `text` is Markdown, on one line except for code and procedures; `trail` are the headings above it;
    `subject` is the first cell of a row."""

    kind: PassageKind
    text: str
    trail: tuple[str, ...] = ()
    subject: str = ""


@lru_cache(maxsize=64)
def passages(markdown: str) -> tuple[Passage, ...]:
    """The passages of a document, in order."""
    reader = _MarkdownReader()
    for line in markdown.splitlines():
        reader.feed(line)
    reader.close()
    return tuple(passage for passage in reader.found if passage.text)


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph. Code spans are never split."""
    masked = _CODE_SPAN.sub(lambda match: "`" + "x" * (len(match[0]) - 2) + "`", text)
    edges = [0, *(match.end() for match in _SENTENCE_END.finditer(masked)), len(text)]
    return [part for start, end in pairwise(edges) if (part := text[start:end].strip())]


@dataclass(slots=True)
class _MarkdownReader:
    """Reads a document line by line and collects its passages."""

    found: list[Passage] = field(default_factory=list)
    trail: list[tuple[int, str]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    kind: Literal["prose", "item", "pointer"] = "prose"
    fence: str = ""
    rows: list[str] = field(default_factory=list)

    def feed(self, line: str) -> None:
        if self.fence:
            self._feed_code(line)
        elif fence := FENCE.match(line):
            self._flush()
            self.fence, self.lines = fence["fence"], [f"```{fence['language'].strip()}"]
        elif heading := HEADING.match(line):
            self._flush()
            level = len(heading["hashes"])
            self.trail = [(above, title) for above, title in self.trail if above < level]
            self.trail.append((level, plain(heading["title"])))
        elif line.lstrip(" …").startswith("|"):
            self._flush_lines()
            self.rows.append(line)
        elif not line.strip():
            self._flush()
        elif item := ITEM.match(line):
            self._flush()
            self.kind, self.lines = "pointer" if LINK.match(item["text"]) else "item", [item["text"]]
        else:
            self._flush_rows()
            self.lines.append(line.strip().removeprefix("> "))

    def close(self) -> None:
        if self.fence:
            # The document was truncated inside a code block: the rest of the lines is still code.
            self._end_code()
        else:
            self._flush()

    def _feed_code(self, line: str) -> None:
        if line.strip().startswith(self.fence):
            self._end_code()
        else:
            self.lines.append(line)

    def _end_code(self) -> None:
        if self.lines[0].removeprefix("```") not in _DIAGRAMS:
            self._add("code", "\n".join([*self.lines, "```"]))
        self.fence, self.lines = "", []

    def _flush(self) -> None:
        self._flush_lines()
        self._flush_rows()

    def _flush_lines(self) -> None:
        if self.lines:
            self._add(self.kind, plain(" ".join(self.lines)))
        self.lines, self.kind = [], "prose"

    def _flush_rows(self) -> None:
        """Add the collected table rows. A snippet may contain rows without the table's header."""
        has_head = len(self.rows) > 1 and bool(_RULE.match(self.rows[1]))
        table = [_cells(row) for row in self.rows if not _RULE.match(row)]
        columns = table.pop(0) if has_head else ()
        for cells in table:
            self._add("row", _row(columns, cells), cells[0])
        self.rows = []

    def _add(self, kind: PassageKind, text: str, subject: str = "") -> None:
        self.found.append(Passage(kind, text, tuple(title for _, title in self.trail), subject))


def plain(text: str) -> str:
    """The text without images, and with links as plain text: their targets are relative to the document."""
    return " ".join(LINK.sub(r"\g<text>", _IMAGE.sub("", text)).replace("\\|", "|").split())


def _cells(row: str) -> list[str]:
    cells = [plain(cell) for cell in _CELL_EDGE.split(row.strip(" …").strip("|"))]
    if row.rstrip().endswith("…"):
        # Truncated by the search: close an open code span.
        cells[-1] += "…" + "`" * (cells[-1].count("`") % 2)
    return cells


def _row(columns: Sequence[str], cells: Sequence[str]) -> str:
    """A table row as text: its subject, the sentence about it, and the other values."""
    rest = [(label, cell) for label, cell in zip_longest(columns[1:], cells[1:], fillvalue="") if cell]
    statements = [pair for pair in rest if pair[1].endswith((".", "!", "?"))]
    if len(statements) != 1:
        statements = [pair for pair in rest if len(pair[1].split()) >= _LONG_CELL]
    if len(rest) == 1:
        return f"{cells[0]}: {rest[0][1]}"
    if len(statements) == 1:
        return f"{cells[0]}: {statements[0][1]} ({_listed([pair for pair in rest if pair not in statements])})"
    return f"{cells[0]}: {_listed(rest)}" if rest else cells[0]


def _listed(pairs: Sequence[tuple[str, str]]) -> str:
    """Values with their labels, separated by semicolons, except after the end of a sentence."""
    text = ""
    for label, cell in pairs:
        text += ("" if not text else " " if text.endswith((".", "!", "?")) else "; ") + _labelled(label, cell)
    return text


def _labelled(label: str, cell: str) -> str:
    return f"{label}: {cell}" if label else cell
