"""Ranking: how well each passage of some documents answers a question, by its words, its headings and its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model import language
from ai_platform_engineering.offline_model.findings import Place, ReadDocument
from ai_platform_engineering.offline_model.inquiries import Form, content_words, form_of
from ai_platform_engineering.offline_model.passages import Passage, passages
from ai_platform_engineering.offline_model.relevance import Question, question, roots_of

_HEADING, _TRAIL, _TITLE, _NEIGHBOUR = 0.7, 0.45, 0.3, 0.4
"""What a word counts that stands not in the passage but near it."""
_SHORT = 25


@dataclass(frozen=True, slots=True)
class Ranked:
    """A passage, where it stands, and how well it answers."""

    source: ReadDocument
    rank: int
    """Of its source: 0 is what the search found first."""
    position: int
    every: tuple[Passage, ...]
    """All passages of the source."""
    section: tuple[int, ...]
    """Positions of the passages in its section."""
    share: float = 0.0
    score: float = 0.0

    @property
    def passage(self) -> Passage:
        return self.every[self.position]

    @property
    def place(self) -> tuple[int, tuple[str, ...]]:
        return self.rank, self.passage.trail

    @property
    def opens(self) -> bool:
        """Whether the passage is what its section begins with, apart from a block of code."""
        first = self.section[0]
        return self.position == first or (self.position == first + 1 and self.every[first].kind == "code")

    def heading_fit(self, asked: Question) -> float:
        """How much of the question the heading has, and how little else."""
        heading = " ".join(self.passage.trail[-1:])
        return asked.share(roots_of(heading)) / max(1, len(language.terms(heading)))


def question_of(text: str, sources: Sequence[ReadDocument]) -> Question:
    texts = [passage.text for source in sources for passage in passages(source.text)]
    words = content_words(text)
    return question(text, words, texts, words[0] if words and form_of(text) == "how" else "")


def ranked(asked: Question, form: Form, places: Sequence[Place], sources: Sequence[ReadDocument]) -> list[Ranked]:
    """The passages that have any word of the question, the best first."""
    hinted = {(place.document_id, _section_key(place.section.split(" > "))) for place in places}
    found: list[Ranked] = []
    for rank, source in enumerate(sources):
        every = passages(source.text)
        sections: dict[tuple[str, ...], list[int]] = {}
        for position, passage in enumerate(every):
            sections.setdefault(passage.trail, []).append(position)
        for position, passage in enumerate(every):
            item = Ranked(source, rank, position, every, tuple(sections[passage.trail]))
            heading = roots_of(" ".join(passage.trail[-1:]))
            if not asked.share(asked.roots(passage.text)) and not (asked.share(heading) and item.opens):
                continue
            share = _share(item, asked)
            is_hinted = (source.document_id, _section_key(passage.trail)) in hinted
            found.append(
                Ranked(source, rank, position, every, item.section, share, share + _bonus(item, asked, form, is_hinted))
            )
    return sorted(found, key=lambda item: (-item.score, item.rank, item.position))


def _share(item: Ranked, asked: Question) -> float:
    """How much of what is asked about a passage has, together with what stands around it."""
    trail = item.passage.trail
    return asked.share_of(
        (asked.roots(item.passage.text), 1.0),
        (roots_of(" ".join(trail[-1:])), _HEADING),
        (roots_of(" ".join(trail[:-1])), _TRAIL),
        (roots_of(f"{item.source.title} {item.source.link}"), _TITLE),
        (_neighbours(item, asked), _NEIGHBOUR),
    )


def _neighbours(item: Ranked, asked: Question) -> frozenset[str]:
    """The roots of the passages before and after. Rows of a table have nothing to do with each other."""
    if item.passage.kind == "row":
        return frozenset()
    near = [position for position in (item.position - 1, item.position + 1) if position in item.section]
    return frozenset().union(
        *(asked.roots(item.every[position].text) for position in near if item.every[position].kind != "row")
    )


def _bonus(item: Ranked, asked: Question, form: Form, is_hinted: bool) -> float:
    """What the place of a passage and its kind tell, beside its words."""
    passage = item.passage
    bonus = 0.12 / (1 + item.rank) + (0.15 if is_hinted else 0.0)
    if passage.subject:
        bonus += (0.3 if form == "what" else 0.15) * asked.share(roots_of(passage.subject))
    if item.opens:
        bonus += (0.4 if form == "what" else 0.25) * item.heading_fit(asked)
    match form:
        case "what":
            bonus += 0.0 if passage.subject else 0.2 * asked.share(roots_of(" ".join(passage.text.split()[:5])))
            bonus -= 0.15 if passage.kind == "code" else 0.0
        case "how":
            bonus += 0.08 if any(item.every[position].kind == "code" for position in item.section) else 0.0
            bonus += 0.06 if passage.kind == "code" else 0.0
        case "open":
            bonus -= 0.1 if passage.kind == "code" else 0.0
    if passage.kind == "pointer":
        bonus -= 0.3
    bonus += 0.3 * asked.wording(passage.text)
    if len(passage.text) < _SHORT and passage.kind != "code":
        bonus -= 0.1
    return bonus


def _section_key(trail: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(title.split()).lower().replace("`", "") for title in trail)
