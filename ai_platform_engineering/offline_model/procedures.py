"""Procedures: how something is done, from one document, whole and in its order.

Steps of a procedure belong together: a part of it, or commands of another document among them, would do harm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model.findings import ReadDocument
from ai_platform_engineering.offline_model.passages import FENCE, HEADING, ITEM, LINK, plain
from ai_platform_engineering.offline_model.ranking import Ranked
from ai_platform_engineering.offline_model.relevance import Question, roots_of

MAX_LENGTH = 2200
"""Characters of a procedure that are told; a longer one is cut between two steps."""
_STEPS = re.compile(r"\b(?:procedure|steps?|instructions|how\s+to|resolution|what\s+to\s+do|walkthrough)\b", re.I)


@dataclass(frozen=True, slots=True)
class Procedure:
    """The text of a procedure as Markdown, the heading it stands under, and where it goes on if it was cut."""

    title: str
    text: str
    continues: str = ""


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading, and the lines below it up to the next one that is not below it."""

    level: int
    trail: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.trail[-1] if self.trail else ""


def procedure(best: Ranked, asked: Question) -> Procedure | None:
    """The procedure that the best passage belongs to; None where its document shows none."""
    sections = list(_sections(best.source.text.splitlines()))
    wanted = _wanted(sections, best, asked)
    if wanted is None or not _shows_steps(wanted.lines):
        return None
    text = _told(wanted.lines)
    title = wanted.title or best.source.title
    if len(text) <= MAX_LENGTH:
        is_cut = best.source.is_cut and _end(wanted.lines) == _end(best.source.text.splitlines())
        return Procedure(title, text, "beyond the part that I read" if is_cut else "")
    kept, after = _cut(wanted.lines)
    return Procedure(title, kept, after)


def _wanted(sections: Sequence[_Section], best: Ranked, asked: Question) -> _Section | None:
    """The section that the question is about: the best passage's own where its heading says something of the question
    that the title does not, else the document's procedure, or all of it."""
    own = next((section for section in sections if section.trail == best.passage.trail), None)
    top = sections[0]
    if own is None or own is top:
        return _of_document(sections) if _is_titled(best.source, asked) else own
    title = roots_of(f"{best.source.title} {' '.join(top.trail)}")
    headings = roots_of(" ".join(own.trail[len(top.trail) :]))
    if not _is_titled(best.source, asked) or asked.share(title | headings) > asked.share(title):
        return own
    return _of_document(sections)


def _is_titled(source: ReadDocument, asked: Question) -> bool:
    """Whether the title of a document says what the question is about."""
    return asked.share(roots_of(source.title)) >= 0.5


def _of_document(sections: Sequence[_Section]) -> _Section:
    whole = sections[0]
    if len(_told(whole.lines)) <= MAX_LENGTH:
        return whole
    steps = [section for section in sections[1:] if _STEPS.search(section.title) and _shows_steps(section.lines)]
    return steps[0] if len(steps) == 1 else whole


def _sections(lines: Sequence[str]) -> Iterator[_Section]:
    """The sections of a document, all of it first."""
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
            yield position, len(heading["marks"]), plain(heading["title"])


def _outside_code(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    fence = ""
    for position, line in enumerate(lines):
        if fence:
            fence = "" if line.strip().startswith(fence) else fence
        elif match := FENCE.match(line):
            fence = match["marks"]
        else:
            yield position, line


def _shows_steps(lines: Sequence[str]) -> bool:
    items = sum(1 for _, line in _outside_code(lines) if (item := ITEM.match(line)) and not LINK.match(item["text"]))
    return items > 1 or any(FENCE.match(line) for line in lines)


def _told(lines: Sequence[str]) -> str:
    """The lines as part of an answer: headings in bold, links as their words, code as it is."""
    prose = dict(_outside_code(lines))
    told = [_line(line) if position in prose else line for position, line in enumerate(lines)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(told)).strip("\n").rstrip()


def _line(line: str) -> str:
    if heading := HEADING.match(line):
        return f"**{plain(heading['title'])}**"
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}{plain(line)}" if line.strip() else ""


def _end(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip()[-80:]


def _cut(lines: Sequence[str]) -> tuple[str, str]:
    """As many whole blocks as there is room for, and the words after which the rest begins."""
    prose = dict(_outside_code(lines))
    edges = [
        position
        for position, line in prose.items()
        if position and not lines[position - 1].strip() and line.strip() and not line[0].isspace()
    ]
    # What a line announces comes with it.
    edges = [edge for edge in edges if not lines[edge - 2].rstrip().endswith(":")]
    fitting = [edge for edge in edges if len(_told(lines[:edge])) <= MAX_LENGTH]
    end = fitting[-1] if fitting else (edges[0] if edges else len(lines))
    following = next((plain(re.sub(r"^\W+", "", line)) for line in lines[end:] if line.strip()), "")
    words = following.split()
    return _told(lines[:end]), f"from “{' '.join(words[:8])}{' …' if len(words) > 8 else ''}” on" if words else ""
