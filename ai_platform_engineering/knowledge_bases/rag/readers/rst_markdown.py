"""Converts the document tree of docutils to Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import Final

from docutils import nodes

from ai_platform_engineering.knowledge_bases.rag.readers.plain_text import without_headings
from ai_platform_engineering.knowledge_bases.rag.readers.rst_inline import code, inline, one_line

_ERROR: Final = 3
_REJECTED_TITLE: Final = re.compile(r"(?:([!-/:-@\[-`{-~])\1*\n)?(?P<title>[^\n]+)\n([!-/:-@\[-`{-~])\3*")
_BEGINS_A_BLOCK: Final = re.compile(r"[-`|>#0-9]")


def markdown_of(document: nodes.document) -> str:
    return _blocks(document.children)


def _blocks(children: Iterable[nodes.Node]) -> str:
    return "\n\n".join(filter(None, map(_block, children)))


@singledispatch
def _block(node: nodes.Node) -> str:
    return _blocks(node.children)


@_block.register(nodes.comment)
@_block.register(nodes.raw)
@_block.register(nodes.substitution_definition)
def _nothing(_node: nodes.Node) -> str:
    return ""


@_block.register
def _paragraph(node: nodes.TextElement) -> str:
    return without_headings(inline(node))


@_block.register
def _title(node: nodes.title) -> str:
    level, parent = 0, node.parent
    while parent is not None:
        level += isinstance(parent, nodes.section)
        parent = parent.parent
    return f"{'#' * min(level, 6)} {one_line(inline(node))}"


@_block.register
def _literal(node: nodes.literal_block) -> str:
    return _fenced(node.astext(), node.get("language", ""))


@_block.register
def _doctest(node: nodes.doctest_block) -> str:
    return _fenced(node.astext(), "pycon")


@_block.register
def _picture(node: nodes.image) -> str:
    alt, address = node.get("alt"), node.get("uri")
    return f"![{alt}]({address})" if alt and address else ""


@_block.register
def _line(_node: nodes.transition) -> str:
    return "---"


@_block.register
def _quotation(node: nodes.block_quote) -> str:
    return _quoted(_blocks(node.children))


@_block.register
def _attribution(node: nodes.attribution) -> str:
    return f"— {inline(node)}"


@_block.register
def _admonition(node: nodes.admonition) -> str:
    title, *body = node.children
    words, text = inline(title), _blocks(body)
    if not text:
        return _quoted(f"**{words}.**")
    between = "\n\n" if _BEGINS_A_BLOCK.match(text) else " "
    return _quoted(f"**{words}:**{between}{text}")


@_block.register
def _line_block(node: nodes.line_block) -> str:
    return "  \n".join(inline(line).strip() for line in node.findall(nodes.line)).strip()


@_block.register(nodes.footnote)
@_block.register(nodes.citation)
def _note(node: nodes.Node) -> str:
    label, *body = node.children
    return f"[{label.astext()}] {_blocks(body)}"


@_block.register
def _rejected(node: nodes.system_message) -> str:
    """The source that docutils rejected, unchanged."""
    source = next((child.astext() for child in node.findall(nodes.literal_block)), "")
    if node["level"] < _ERROR:
        return ""
    title = _REJECTED_TITLE.fullmatch(source)
    return f"**{title['title'].strip()}**" if title else _fenced(source, "")


@_block.register(nodes.bullet_list)
@_block.register(nodes.definition_list)
@_block.register(nodes.field_list)
@_block.register(nodes.option_list)
def _list(node: nodes.Node) -> str:
    return _joined(_item("- ", text) for text in map(_item_text, node.children))


@_block.register
def _enumerated(node: nodes.enumerated_list) -> str:
    first = node.get("start", 1)
    return _joined(_item(f"{number}. ", _item_text(item)) for number, item in enumerate(node.children, first))


def _joined(texts: Iterable[str]) -> str:
    items = [text for text in texts if text]
    return ("\n\n" if any("\n\n" in item for item in items) else "\n").join(items)


def _item(marker: str, text: str) -> str:
    indent = " " * len(marker)
    lines = (f"{indent}{line}" if line else "" for line in text.split("\n"))
    return marker + "\n".join(lines)[len(marker) :] if text else ""


@singledispatch
def _item_text(item: nodes.Node) -> str:
    return _block(item)


@_item_text.register
def _field(item: nodes.field) -> str:
    name, body = item.children
    text = _blocks(body.children)
    # A field without a value is meant for the program that builds the pages.
    return f"{inline(name)}: {text}" if text else ""


@_item_text.register
def _option(item: nodes.option_list_item) -> str:
    options, description = item.children
    names = ", ".join(code(option.astext()) for option in options.children)
    return f"{names}: {_blocks(description.children)}"


@_item_text.register
def _definition(item: nodes.definition_list_item) -> str:
    *terms, definition = item.children
    return f"{' : '.join(map(inline, terms))}\n\n{_blocks(definition.children)}".strip()


@_block.register
def _table(node: nodes.table) -> str:
    """The first row becomes the head, because Markdown tables need one."""
    titles = (inline(title) for title in node.children if isinstance(title, nodes.title))
    rows = list(_rows(node))
    width = max(map(len, rows), default=0)
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in rows]
    return "\n\n".join((*titles, "\n".join((*lines[:1], "|" + "---|" * width, *lines[1:]))))


def _rows(table: nodes.table) -> Iterator[list[str]]:
    """A cell that spans several columns or rows has its text in the first one; the others are empty."""
    covered: dict[int, int] = {}
    for row in table.findall(nodes.row):
        if row.parent.parent.parent is not table:  # a table nested in a cell
            continue
        cells: list[str] = []
        for entry in row.children:
            _cover(cells, covered)
            columns, rows = _span(entry)
            covered.update(dict.fromkeys(range(len(cells), len(cells) + 1 + columns), rows))
            cells += [_cell(entry), *[""] * columns]
        _cover(cells, covered)
        yield cells


def _span(entry: nodes.Node) -> tuple[int, int]:
    """The number of additional columns and rows that a cell spans."""
    return (entry.get("morecols", 0), entry.get("morerows", 0)) if isinstance(entry, nodes.Element) else (0, 0)


def _cover(cells: list[str], covered: dict[int, int]) -> None:
    """Add empty cells where a cell of a row above extends into this one."""
    while covered.get(len(cells)):
        covered[len(cells)] -= 1
        cells.append("")


def _cell(entry: nodes.Node) -> str:
    parts = (
        code(child.astext()) if isinstance(child, nodes.literal_block) else one_line(_block(child))
        for child in entry.children
    )
    return " ".join(filter(None, parts)).replace("|", "\\|")


def _fenced(text: str, language: str) -> str:
    lines = text.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        return ""
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return "\n".join((f"{fence}{language}", *lines, fence))


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n")) if text else ""
