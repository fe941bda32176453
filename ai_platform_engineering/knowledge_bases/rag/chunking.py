"""Cuts a document into chunks along its structure.

A chunk belongs to one section and keeps the lines of the document unchanged. Small neighbouring blocks are joined to
one chunk. Code and tables are cut only above a maximum size. Long prose is cut between sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document
from ai_platform_engineering.knowledge_bases.rag.readers.titles import shortened, without_markup

CHUNKER_VERSION: Final = "2"
"""Change it when the chunks of the same document change: the next ingest then cuts all documents again."""

TARGET_LENGTH: Final = 900
"""Characters. Small embedding models read little more than that of a text."""
MAX_PROSE_LENGTH: Final = 1600
MAX_CODE_LENGTH: Final = 4000
"""Longer code is cut between lines. The limit of prose applies to tables, because each row can stand below a copy of
the head."""
_SMALL: Final = 250
"""A shorter text is joined to a neighbour if possible."""

_MAX_FRAME_LENGTH: Final = 400
"""Characters of a fence or a table head. A longer one is not repeated in each part."""
_SEPARATOR: Final = " > "
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])[\"'”’)\]*_`]*\s+|(?<=[。！？])|\n")
_PUNCTUATION: Final = re.compile(r"[^\w\s]+")
_FENCE: Final = re.compile(r"[\s>]*(`{3,}|~{3,})")
_LEADING_BLANK: Final = re.compile(r"\A(?:[^\S\n]*\n)+")
_CONTAINERS: Final = frozenset({"bullet_list", "ordered_list", "list_item", "blockquote"})


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines of a document that are not cut further. A `heading` stays with the block after it."""

    text: str
    section: str
    heading: bool = False
    code: bool = False


def chunks_of(document: Document) -> list[Chunk]:
    """The whole text of the document in order, as chunks numbered from 0."""
    groups = _without_remainders(_grouped(_blocks(document.text)))
    texts = [(group[-1].section, text) for group in groups if (text := _joined(group))]
    return [Chunk(document.document_id, index, section, text) for index, (section, text) in enumerate(texts)]


def _grouped(blocks: Iterable[_Block]) -> Iterator[list[_Block]]:
    """Join blocks into groups, one for each chunk."""
    group: list[_Block] = []
    size = 0
    only_headings = True
    for block in blocks:
        if group and not _fits(block, group[-1], size, only_headings=only_headings):
            introduction = _introduction(group, block)
            yield group[: len(group) - len(introduction)]
            group = [*introduction]
            size = _size(group)
            only_headings = not group
        group.append(block)
        size += len(block.text) + 1
        only_headings = only_headings and block.heading
    if group:
        yield group


def _fits(block: _Block, last: _Block, size: int, *, only_headings: bool) -> bool:
    """Whether a group of this size that ends with `last` can take the block."""
    together = size + len(block.text)
    if together > (MAX_CODE_LENGTH if block.code else MAX_PROSE_LENGTH) + _SMALL:
        return False
    if only_headings:
        return True
    if block.heading or block.section != last.section:
        return False
    return size < _SMALL or together <= TARGET_LENGTH


def _introduction(group: Sequence[_Block], block: _Block) -> Sequence[_Block]:
    """A last line that introduces the next block (`Run this:`) moves to it, if the group is not empty without it."""
    *before, last = group
    introduces = last.text.rstrip().endswith(":") and len(last.text) < _SMALL and last.section == block.section
    return [last] if introduces and any(not other.heading for other in before) else []


def _without_remainders(groups: Iterable[list[_Block]]) -> Iterator[list[_Block]]:
    """Join a short rest at the end of a section to the group before it."""
    pending: list[_Block] = []
    for group in groups:
        size = _size(group)
        if (
            pending
            and group[0].section == pending[-1].section
            and size < _SMALL
            and size + _size(pending) <= MAX_PROSE_LENGTH
        ):
            pending = [*pending, *group]
            continue
        if pending:
            yield pending
        pending = group
    if pending:
        yield pending


def _size(blocks: Sequence[_Block]) -> int:
    return sum(len(block.text) + 1 for block in blocks)


def _joined(blocks: Sequence[_Block]) -> str:
    text = "\n".join(block.text for block in blocks)
    return _LEADING_BLANK.sub("", text).rstrip()


@cache
def _parser() -> MarkdownIt:
    """Parses blocks only. Inline markup is not needed and would take most of the time."""
    parser = MarkdownIt("commonmark").enable("table").disable("reference")
    parser.core.ruler.enableOnly(["normalize", "block"])
    # The first use compiles the rules, which is not thread-safe.
    parser.parse("x")
    return parser


def _blocks(text: str) -> Iterator[_Block]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    trail: list[tuple[int, str]] = []
    for node, start, end in _spans(SyntaxTreeNode(_parser().parse(text)).children, 0, len(lines)):
        if node is not None and node.type == "heading":
            level = int(node.tag[1])
            words = without_markup(node.children[0].content if node.children else "")
            trail = [(above, name) for above, name in trail if above < level]
            trail.append((level, shortened(words)))
        section = _SEPARATOR.join(name for _, name in trail if name)
        yield from _cut(node, lines, start, end, section)


def _spans(nodes: Sequence[SyntaxTreeNode], start: int, end: int) -> Iterator[tuple[SyntaxTreeNode | None, int, int]]:
    """The nodes with their first and last lines. Blank lines between two nodes belong to the first one."""
    placed = [(node, node.map[0]) for node in nodes if node.map is not None]
    if not placed:
        yield None, start, end
        return
    if placed[0][1] > start:
        yield None, start, placed[0][1]
    for index, (node, first) in enumerate(placed):
        yield node, first, placed[index + 1][1] if index + 1 < len(placed) else end


def _cut(node: SyntaxTreeNode | None, lines: Sequence[str], start: int, end: int, section: str) -> Iterator[_Block]:
    text = "\n".join(lines[start:end])
    kind = "" if node is None else node.type
    is_code = kind in {"fence", "code_block"}
    if len(text) <= (MAX_CODE_LENGTH if is_code else MAX_PROSE_LENGTH):
        yield _Block(text, section, heading=kind == "heading", code=is_code)
    elif is_code or kind == "table":
        yield from (_Block(part, section, code=is_code) for part in _cut_between_lines(kind, lines[start:end]))
    elif node is not None and kind in _CONTAINERS and node.children:
        for child, first, last in _spans(node.children, start, end):
            yield from _cut(child, lines, first, last, section)
    else:
        yield from (_Block(part, section) for part in _cut_between_sentences(text))


def _cut_between_lines(kind: str, lines: Sequence[str]) -> Iterator[str]:
    """Each part is code or a table again: it repeats the fence, or the head of the table."""
    before, after = _frame(kind, lines)
    body = lines[len(before) : len(lines) - len(after)]
    max_length = TARGET_LENGTH if kind == "table" else MAX_PROSE_LENGTH
    part: list[str] = []
    size = 0
    for piece in (piece for line in body for piece in _cut_between_words(line, MAX_PROSE_LENGTH)):
        # A part does not start with blank lines only.
        if part and piece and size + len(piece) > max_length:
            yield "\n".join((*before, *part, *after))
            part, size = [], 0
        part.append(piece)
        size += len(piece) + 1
    yield "\n".join((*before, *part, *after))


def _frame(kind: str, lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    if len(lines[0]) > _MAX_FRAME_LENGTH:
        return (), ()
    if kind == "table":
        return lines[:2], ()
    opening = _FENCE.match(lines[0]) if kind == "fence" else None
    if opening is None:
        return (), ()
    last = max((index for index, line in enumerate(lines) if line.strip()), default=0)
    closing = _FENCE.match(lines[last])
    closed = last > 0 and closing is not None and closing[1].startswith(opening[1])
    return lines[:1], lines[last:] if closed else ()


def _cut_between_sentences(text: str) -> Iterator[str]:
    size = ceil(len(text) / ceil(len(text) / TARGET_LENGTH))
    part = ""
    for sentence in _sentences(text):
        for piece in _cut_between_words(sentence, MAX_PROSE_LENGTH):
            if part and len(part) + len(piece) > size:
                yield part
                part = ""
            part += piece
    if part:
        yield part


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for end in _SENTENCE_END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    yield text[start:]


def _cut_between_words(text: str, size: int) -> Iterator[str]:
    while len(text) > size:
        cut = max(text.rfind(" ", 0, size), text.rfind("\n", 0, size)) + 1
        if cut == 0:
            # A long line without spaces is data. It can be cut after punctuation.
            cut = max((match.end() for match in _PUNCTUATION.finditer(text, 0, size)), default=size)
        yield text[:cut]
        text = text[cut:]
    yield text
