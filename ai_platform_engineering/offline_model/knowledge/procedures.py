"""Procedures: the instructions of one document, complete and in their order.

A partial procedure, or one mixed with commands of another document, would be dangerous to follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model.knowledge.passages import FENCE, HEADING, ITEM, LINK, plain
from ai_platform_engineering.offline_model.knowledge.ranking import RankedPassage
from ai_platform_engineering.offline_model.knowledge.relevance import WeightedQuestion, roots_of
from ai_platform_engineering.offline_model.knowledge.search_results import FetchedDocument

MAX_LENGTH = 2200
"""Maximum characters of a quoted procedure; a longer one is cut between two steps."""
_STEPS = re.compile(r"\b(?:procedure|steps?|instructions|how\s+to|resolution|what\s+to\s+do|walkthrough)\b", re.I)


@dataclass(frozen=True, slots=True)
class DocumentProcedure:
    """A procedure as Markdown, its heading, and where the document continues if it was cut."""

    title: str
    text: str
    continues: str = ""


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading, and its lines up to the next heading of the same or a higher level."""

    level: int
    trail: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.trail[-1] if self.trail else ""


def procedure(best: RankedPassage, asked: WeightedQuestion) -> DocumentProcedure | None:
    """The procedure that contains the best passage; None if the document has no steps there."""
    sections = list(_sections(best.source.text.splitlines()))
    wanted = _section_to_quote(sections, best, asked)
    if wanted is None or not _shows_steps(wanted.lines):
        return None
    text = _rendered(wanted.lines)
    title = wanted.title or best.source.title
    if len(text) <= MAX_LENGTH:
        is_cut = best.source.is_cut and _end(wanted.lines) == _end(best.source.text.splitlines())
        return DocumentProcedure(title, text, "beyond the part that I read" if is_cut else "")
    text, after = _cut(wanted.lines)
    return DocumentProcedure(title, text, after)


def _section_to_quote(sections: Sequence[_Section], best: RankedPassage, asked: WeightedQuestion) -> _Section | None:
    """The section to quote: that of the best passage, if its heading matches more of the question than the document's
    title does; else the document's procedure, or the whole document."""
    own = next((section for section in sections if section.trail == best.passage.trail), None)
    top = sections[0]
    if own is None or own is top:
        return _document_section(sections) if _is_titled(best.source, asked) else own
    title = roots_of(f"{best.source.title} {' '.join(top.trail)}")
    headings = roots_of(" ".join(own.trail[len(top.trail) :]))
    if not _is_titled(best.source, asked) or asked.share(title | headings) > asked.share(title):
        return own
    return _document_section(sections)


def _is_titled(source: FetchedDocument, asked: WeightedQuestion) -> bool:
    """Whether the title of a document contains at least half of the question."""
    return asked.share(roots_of(source.title)) >= 0.5


def _document_section(sections: Sequence[_Section]) -> _Section:
    whole = sections[0]
    if len(_rendered(whole.lines)) <= MAX_LENGTH:
        return whole
    steps = [section for section in sections[1:] if _STEPS.search(section.title) and _shows_steps(section.lines)]
    return steps[0] if len(steps) == 1 else whole


def _sections(lines: Sequence[str]) -> Iterator[_Section]:
    """The sections of a document, the whole document first."""
    headings = list(_headings(lines))
    if not headings or headings[0][1] > 1 or any(line.strip() for line in lines[: headings[0][0]]):
        yield _Section(0, (), tuple(lines))
    trail: list[tuple[int, str]] = []
    for number, (position, level, title) in enumerate(headings):
        trail = [*((above, name) for above, name in trail if above < level), (level, title)]
        end = next((other for other, deep, _ in headings[number + 1 :] if deep <= level), len(lines))
        yield _Section(level, tuple(name for _, name in trail), tuple(lines[position + 1 : end]))


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    for position, line in _outside_code(lines):
        if heading := HEADING.match(line):
            yield position, len(heading["hashes"]), plain(heading["title"])


def _outside_code(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    fence = ""
    for position, line in enumerate(lines):
        if fence:
            fence = "" if line.strip().startswith(fence) else fence
        elif match := FENCE.match(line):
            fence = match["fence"]
        else:
            yield position, line


def _shows_steps(lines: Sequence[str]) -> bool:
    items = sum(1 for _, line in _outside_code(lines) if (item := ITEM.match(line)) and not LINK.match(item["text"]))
    return items > 1 or any(FENCE.match(line) for line in lines)


def _rendered(lines: Sequence[str]) -> str:
    """The lines as part of an answer: headings in bold, links as plain text, code unchanged."""
    prose = dict(_outside_code(lines))
    rendered = [_line(line) if position in prose else line for position, line in enumerate(lines)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(rendered)).strip("\n").rstrip()


def _line(line: str) -> str:
    if heading := HEADING.match(line):
        return f"**{plain(heading['title'])}**"
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}{plain(line)}" if line.strip() else ""


def _end(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip()[-80:]


def _cut(lines: Sequence[str]) -> tuple[str, str]:
    """The complete blocks that fit into `MAX_LENGTH`, and the first words of the rest."""
    prose = dict(_outside_code(lines))
    edges = [
        position
        for position, line in prose.items()
        if position and not lines[position - 1].strip() and line.strip() and not line[0].isspace()
    ]
    # A line that ends with a colon is not separated from the next block.
    edges = [edge for edge in edges if not lines[edge - 2].rstrip().endswith(":")]
    fitting = [edge for edge in edges if len(_rendered(lines[:edge])) <= MAX_LENGTH]
    end = fitting[-1] if fitting else (edges[0] if edges else len(lines))
    following = next((plain(re.sub(r"^\W+", "", line)) for line in lines[end:] if line.strip()), "")
    words = following.split()
    return _rendered(lines[:end]), f"from “{' '.join(words[:8])}{' …' if len(words) > 8 else ''}” on" if words else ""
