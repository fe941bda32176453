"""Extracts: the passages of documents that answer a question best, chosen by its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ai_platform_engineering.utils.llm.offline.findings import Place, ReadDocument
from ai_platform_engineering.utils.llm.offline.inquiries import Form, content_words, form_of
from ai_platform_engineering.utils.llm.offline.passages import Passage, passages, sentences
from ai_platform_engineering.utils.llm.offline.relevance import Term, root, roots_of, terms_of, weights

ENOUGH = 0.5
"""The share of what is asked about that a passage and its headings must have to be an answer."""
SOME = 0.25
"""The share from which on a passage is worth showing as the nearest that was found."""
_CLOSE = 0.62
_MOST = {"how": 3, "what": 3, "open": 3}
_SECTION_LENGTH = 1100
_PARAGRAPH_LENGTH = 420
_HEADING, _TRAIL, _TITLE, _NEIGHBOUR = 0.7, 0.45, 0.3, 0.4


@dataclass(frozen=True, slots=True)
class Extract:
    """Neighbouring passages of one section of a document, in their order."""

    document_id: str
    title: str
    link: str
    section: str
    passages: tuple[Passage, ...]
    share: float
    """How much of what is asked about it has: between 0 and 1."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    source: ReadDocument
    rank: int
    position: int
    passage: Passage
    share: float = 0.0
    score: float = 0.0


def extracts(question: str, places: Sequence[Place], read: Sequence[ReadDocument]) -> list[Extract]:
    """The extracts that answer a question, the best first; none when the words do not meet."""
    candidates = _scored(question, places, _sources(places, read))
    candidates.sort(key=lambda item: (-item.score, item.rank, item.position))
    if not candidates or candidates[0].score < SOME:
        return []
    form = form_of(question)
    best = candidates[0].score
    chosen: list[_Candidate] = []
    for item in candidates:
        if len(chosen) == _MOST[form] or item.score < best * _CLOSE:
            break
        if not any(_says_the_same(item, other) for other in chosen):
            chosen.append(item)
    return _joined(chosen, candidates, form)


def _sources(places: Sequence[Place], read: Sequence[ReadDocument]) -> list[ReadDocument]:
    """What can be quoted, in the order in which it was found: documents, and snippets of those that were not read."""
    by_id = {document.document_id: document for document in read}
    found: dict[str, ReadDocument] = {}
    for place in places:
        document = by_id.get(place.document_id)
        if document is not None and (_contains(document.text, place.snippet) or not place.snippet):
            found.setdefault(place.document_id, document)
        else:
            if document is not None:
                found.setdefault(place.document_id, document)
            key = f"{place.document_id}\0{place.section}"
            found.setdefault(key, ReadDocument(place.document_id, place.title, place.link, _whole(place)))
    for document in read:
        found.setdefault(document.document_id, document)
    return list(found.values())


def _contains(text: str, snippet: str) -> bool:
    """Whether the middle of a snippet stands in a text, however its lines were broken."""
    words = snippet.replace("…", " ").split()
    middle = words[len(words) // 4 : len(words) // 4 + 6]
    return " ".join(middle) in " ".join(text.split())


def _whole(place: Place) -> str:
    """A snippet as a document: its heading, and its whole sentences, where it has any."""
    parts = sentences(" ".join(place.snippet.split()))
    if parts and parts[0].startswith("…"):
        parts = parts[1:] or parts
    if len(parts) > 1 and parts[-1].endswith("…"):
        parts = parts[:-1]
    trail = [part.strip() for part in place.section.split(">") if part.strip()]
    headings = "\n\n".join(f"{'#' * min(level, 6)} {title}" for level, title in enumerate(trail, 1))
    return f"{headings}\n\n{' '.join(parts)}"


def _scored(question: str, places: Sequence[Place], sources: Sequence[ReadDocument]) -> list[_Candidate]:
    terms = terms_of(content_words(question))
    found = [
        _Candidate(source, rank, position, passage)
        for rank, source in enumerate(sources)
        for position, passage in enumerate(passages(source.text))
    ]
    weight = weights(terms, [roots_of(item.passage.text) for item in found])
    total = sum(weight.values())
    if not total:
        return []
    form = form_of(question)
    hinted = {(place.document_id, _section_key(place.section)) for place in places}
    scored = []
    for item in found:
        share, own = _share(item, found, weight, total)
        if not own:
            continue
        bonus = _bonus(item, form, terms, hinted)
        scored.append(replace(item, share=share, score=share + (bonus if share >= SOME else 0.0)))
    return scored


def _share(
    item: _Candidate, found: Sequence[_Candidate], weight: Mapping[Term, float], total: float
) -> tuple[float, bool]:
    """How much of the terms a passage has with what stands around it, and whether it has any itself."""
    own = roots_of(item.passage.text)
    trail = item.passage.trail
    heading = roots_of(trail[-1]) if trail else frozenset()
    above = roots_of(" ".join(trail[:-1]))
    title = roots_of(f"{item.source.title} {item.source.link}")
    near = _neighbours(item, found)
    gained = 0.0
    has_own = False
    for term, value in weight.items():
        mine = term.match(own)
        has_own = has_own or mine > 0
        gained += value * max(
            mine,
            _HEADING * term.match(heading),
            _TRAIL * term.match(above),
            _TITLE * term.match(title),
            _NEIGHBOUR * term.match(near),
        )
    in_heading = any(term.match(heading) for term in weight)
    return gained / total, has_own or (in_heading and item.passage.kind == "code")


def _neighbours(item: _Candidate, found: Sequence[_Candidate]) -> frozenset[str]:
    """The roots of the passages before and after, in the same section. Rows of a table have nothing to do with each
    other."""
    if item.passage.kind == "row":
        return frozenset()
    start = next(index for index, other in enumerate(found) if other.source is item.source)
    whole = [start + item.position - 1, start + item.position + 1]
    return frozenset().union(
        *(
            roots_of(found[index].passage.text)
            for index in whole
            if 0 <= index < len(found)
            and found[index].source is item.source
            and found[index].passage.trail == item.passage.trail
            and found[index].passage.kind != "row"
        )
    )


def _bonus(item: _Candidate, form: Form, terms: Sequence[Term], hinted: set[tuple[str, str]]) -> float:
    passage = item.passage
    bonus = 0.12 / (1 + item.rank)
    if (item.source.document_id, _section_key(" > ".join(passage.trail))) in hinted:
        bonus += 0.12
    if form == "what":
        opening = roots_of(" ".join((passage.subject or passage.text).split()[:6]))
        if terms and all(term.match(opening) == 1.0 for term in terms):
            bonus += 0.35 if passage.kind == "row" else 0.2
        if passage.kind == "code":
            bonus -= 0.15
    if form == "how" and passage.kind == "code":
        bonus += 0.1
    if len(passage.text) < 25 and passage.kind != "code":
        bonus -= 0.1
    return bonus


def _section_key(section: str) -> str:
    return " ".join(root(word) for word in section.replace(">", " ").split())


def _says_the_same(one: _Candidate, other: _Candidate) -> bool:
    mine, others = roots_of(one.passage.text), roots_of(other.passage.text)
    return len(mine & others) >= 0.8 * min(len(mine), len(others))


def _joined(chosen: Sequence[_Candidate], candidates: Sequence[_Candidate], form: Form) -> list[Extract]:
    """The chosen passages by section, with what they need to be understood."""
    found: dict[tuple[int, tuple[str, ...]], Extract] = {}
    for item in chosen:
        key = (item.rank, item.passage.trail)
        if key in found:
            continue
        mine = {other.position for other in chosen if (other.rank, other.passage.trail) == key}
        around = _around(item, mine, form)
        source = item.source
        found[key] = Extract(
            source.document_id, source.title, source.link, " > ".join(item.passage.trail), around, item.share
        )
    return list(found.values())


def _around(item: _Candidate, chosen: set[int], form: Form) -> tuple[Passage, ...]:
    """The chosen passages of a section. How something is done is told by the whole section, where that is short; a
    block of code comes with what introduces it, and the other way round."""
    every = passages(item.source.text)
    section = [position for position, passage in enumerate(every) if passage.trail == item.passage.trail]
    if form == "how" and sum(len(every[position].text) for position in section) <= _SECTION_LENGTH:
        return tuple(every[position] for position in section)
    wanted = set(chosen)
    for position in chosen:
        before, after = position - 1, position + 1
        if every[position].kind == "code" and before in section and every[before].kind in {"prose", "item"}:
            wanted.add(before)
        if every[position].text.endswith(":"):
            wanted.update(_introduced(every, after, section))
        elif form == "how" and after in section and every[after].kind == "code":
            wanted.add(after)
    terms = terms_of([])
    return tuple(_shortened(every[position], terms) for position in sorted(wanted))


def _introduced(every: Sequence[Passage], start: int, section: Sequence[int]) -> list[int]:
    """What a passage that ends in a colon introduces: a block of code, or the items or rows that follow."""
    if start not in section:
        return []
    kind = every[start].kind
    if kind in {"code", "prose"}:
        return [start]
    found = []
    for position in range(start, min(start + 8, len(every))):
        if position not in section or every[position].kind != kind:
            break
        found.append(position)
    return found


def _shortened(passage: Passage, _terms: Sequence[Term]) -> Passage:
    return passage
