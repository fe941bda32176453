"""Ranking: score the passages of documents for a question by their words, headings and position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.knowledge.passages import Passage, passages
from ai_platform_engineering.offline_model.knowledge.relevance import WeightedQuestion, question, roots_of
from ai_platform_engineering.offline_model.knowledge.search_results import FetchedDocument, SearchHit
from ai_platform_engineering.offline_model.planning.inquiries import QuestionForm, content_words, question_form

_HEADING, _TRAIL, _TITLE, _NEAR = 0.7, 0.45, 0.3, 0.4
"""Factors for words that are not in the passage but near it."""
_MIN_LENGTH = 25


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage with its position and its scores."""

    source: FetchedDocument
    rank: int
    """The rank of its source: 0 is the first search hit."""
    position: int
    source_passages: tuple[Passage, ...]
    """All passages of the source."""
    section: tuple[int, ...]
    """Positions of the passages in its section."""
    share: float = 0.0
    score: float = 0.0

    @property
    def passage(self) -> Passage:
        return self.source_passages[self.position]

    @property
    def section_id(self) -> tuple[int, tuple[str, ...]]:
        return self.rank, self.passage.trail

    @property
    def opens(self) -> bool:
        """Whether the passage is the first of its section, or the first after a code block."""
        first = self.section[0]
        return self.position == first or (self.position == first + 1 and self.source_passages[first].kind == "code")

    def heading_fit(self, asked: WeightedQuestion) -> float:
        """The share of the question in the heading, divided by the number of its terms."""
        heading = " ".join(self.passage.trail[-1:])
        return asked.share(roots_of(heading)) / max(1, len(lexical.terms(heading)))


def question_of(text: str, sources: Sequence[FetchedDocument]) -> WeightedQuestion:
    texts = [passage.text for source in sources for passage in passages(source.text)]
    words = content_words(text)
    return question(text, words, texts, words[0] if words and question_form(text) == "how" else "")


def ranked(
    asked: WeightedQuestion, form: QuestionForm, hits: Sequence[SearchHit], sources: Sequence[FetchedDocument]
) -> list[RankedPassage]:
    """The passages with at least one term of the question, the best first."""
    hinted = {(hit.document_id, _section_key(hit.section.split(" > "))) for hit in hits}
    found: list[RankedPassage] = []
    for rank, source in enumerate(sources):
        source_passages = passages(source.text)
        sections: dict[tuple[str, ...], list[int]] = {}
        for position, passage in enumerate(source_passages):
            sections.setdefault(passage.trail, []).append(position)
        for position, passage in enumerate(source_passages):
            item = RankedPassage(source, rank, position, source_passages, tuple(sections[passage.trail]))
            heading = roots_of(" ".join(passage.trail[-1:]))
            if not asked.share(asked.roots(passage.text)) and not (asked.share(heading) and item.opens):
                continue
            share = _share(item, asked)
            is_hinted = (source.document_id, _section_key(passage.trail)) in hinted
            found.append(
                RankedPassage(
                    source,
                    rank,
                    position,
                    source_passages,
                    item.section,
                    share,
                    share + _bonus(item, asked, form, is_hinted),
                )
            )
    return sorted(found, key=lambda item: (-item.score, item.rank, item.position))


def _share(item: RankedPassage, asked: WeightedQuestion) -> float:
    """The share of the question's terms in a passage, its headings, its document's title and its neighbours."""
    trail = item.passage.trail
    return asked.share_of(
        (asked.roots(item.passage.text), 1.0),
        (roots_of(" ".join(trail[-1:])), _HEADING),
        (roots_of(" ".join(trail[:-1])), _TRAIL),
        (roots_of(f"{item.source.title} {item.source.link}"), _TITLE),
        (_neighbours(item, asked), _NEAR),
    )


def _neighbours(item: RankedPassage, asked: WeightedQuestion) -> frozenset[str]:
    """The roots of the passages before and after. Table rows are independent of each other."""
    if item.passage.kind == "row":
        return frozenset()
    near = [position for position in (item.position - 1, item.position + 1) if position in item.section]
    return frozenset().union(
        *(
            asked.roots(item.source_passages[position].text)
            for position in near
            if item.source_passages[position].kind != "row"
        )
    )


def _bonus(item: RankedPassage, asked: WeightedQuestion, form: QuestionForm, is_hinted: bool) -> float:
    """The part of the score that depends on the position and the kind of a passage."""
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
            bonus += 0.08 if any(item.source_passages[position].kind == "code" for position in item.section) else 0.0
            bonus += 0.06 if passage.kind == "code" else 0.0
        case "open":
            bonus -= 0.1 if passage.kind == "code" else 0.0
    if passage.kind == "pointer":
        bonus -= 0.3
    bonus += 0.3 * asked.wording(passage.text)
    if len(passage.text) < _MIN_LENGTH and passage.kind != "code":
        bonus -= 0.1
    return bonus


def _section_key(trail: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(title.split()).lower().replace("`", "") for title in trail)
