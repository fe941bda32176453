"""Extracts: the passages of documents that answer a question best, with what they need to be understood."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ai_platform_engineering.offline_model.findings import Place, ReadDocument
from ai_platform_engineering.offline_model.inquiries import Form, form_of
from ai_platform_engineering.offline_model.passages import Passage, sentences
from ai_platform_engineering.offline_model.procedures import procedure
from ai_platform_engineering.offline_model.ranking import Ranked, question_of, ranked
from ai_platform_engineering.offline_model.relevance import Question, roots_of
from ai_platform_engineering.offline_model.vocabulary import word_set

ENOUGH = 0.5
"""The share of what is asked about that a passage and its headings must have to be an answer."""
_UNCLEAR = 0.49
_SOME = 0.25
"""The share from which on a passage is worth showing as the nearest that was found."""
_CLOSE = 0.75
"""What scores at least this share of the best is told too, where it has a similar share of what is asked about."""
_SIMILAR = 0.65
_MAX_EXTRACTS = 3
_ANSWER_LENGTH = 1200
"""Characters after which no further section is told."""
_SECTION_LENGTH = 1100
_PARAGRAPH_LENGTH = 420
_EXAMPLE_LENGTH = 400
_OPENING = 8
_SAYING = word_set("is are means mean was were stands refers names lists says")
"""Verbs of definitions, which come soon after their subject."""
_GAP = "…"


@dataclass(frozen=True, slots=True)
class Extract:
    """Passages of one section of a document, in their order."""

    document_id: str
    title: str
    link: str
    section: str
    passages: tuple[Passage, ...]
    share: float
    """How much of what is asked about it has: between 0 and 1."""
    defines: bool = False
    """Whether it says what the thing is that is asked about."""
    unsaid: tuple[str, ...] = ()
    """Words of the question that the document of a procedure does not have."""
    continues: str = ""
    """Where the document goes on, if the extract had to be cut."""


def extracts(text: str, places: Sequence[Place], read: Sequence[ReadDocument]) -> list[Extract]:
    """The extracts that answer a question, the best first; none when the words do not meet."""
    form = form_of(text)
    question = question_of(text, sources := list(_sources(places, read)))
    found = ranked(question, form, places, sources)
    if not found or found[0].share < _SOME:
        return []
    if form == "how":
        near = sorted(_near(found), key=lambda item: -question.share(roots_of(item.source.title)))
        shown = next(filter(None, (_shown(item, question) for item in near if _is_headed(item, question))), None)
        if shown is not None:
            return [shown]
        found = [_doubted(item, question) for item in found if item.source == found[0].source]
    chosen: list[Ranked] = []
    for item in _near(found):
        if len(chosen) == _MAX_EXTRACTS:
            break
        if not any(_says_the_same(item, other) for other in chosen):
            chosen.append(item)
    told: list[Extract] = []
    for extract in _by_section(chosen, question, form):
        if told and _length([*told, extract]) > _ANSWER_LENGTH:
            break
        told.append(extract)
    return told


def _near(found: Sequence[Ranked]) -> Iterator[Ranked]:
    """The passages that answer nearly as well as the best."""
    for item in found:
        if item.score < found[0].score * _CLOSE:
            return
        if item.share >= found[0].share * _SIMILAR:
            yield item


def _is_headed(item: Ranked, question: Question) -> bool:
    """Whether the title or a heading above a passage has to do with the question, or the passage introduces a section.
    Elsewhere it is only mentioned."""
    return (item.opens and item.passage.kind == "prose") or question.share(
        roots_of(" ".join([item.source.title, *item.passage.trail]))
    ) > 0


def _doubted(item: Ranked, question: Question) -> Ranked:
    return item if _is_headed(item, question) else replace(item, share=min(item.share, _UNCLEAR))


def _shown(item: Ranked, question: Question) -> Extract | None:
    """The procedure that a passage belongs to. A document without the most telling word answers something else."""
    told = procedure(item, question)
    if told is None:
        return None
    source = item.source
    said = roots_of(f"{source.title} {source.link} {source.text}")
    unsaid = tuple(term.word for term in question.weights if not term.match(said))
    telling = max(question.weights, key=lambda term: question.weights[term])
    return Extract(
        source.document_id,
        source.title,
        source.link,
        told.title,
        (Passage("procedure", told.text, (told.title,)),),
        min(item.share, _UNCLEAR) if telling.word in unsaid else item.share,
        unsaid=unsaid,
        continues=told.continues,
    )


def _length(found: Sequence[Extract]) -> int:
    return sum(len(passage.text) for extract in found for passage in extract.passages)


def _sources(places: Sequence[Place], read: Sequence[ReadDocument]) -> Iterator[ReadDocument]:
    """What can be quoted, in the order in which it was found: documents, and snippets where those were not read, or
    not as far."""
    by_id = {document.document_id: document for document in read}
    told: set[str] = set()
    for place in places:
        document = by_id.get(place.document_id)
        if document is not None and place.document_id not in told:
            told.add(place.document_id)
            yield document
        if document is None or not _contains(document.text, place.snippet):
            yield ReadDocument(place.document_id, place.title, place.link, _as_document(place), is_cut=True)
    yield from (document for document in read if document.document_id not in told)


def _contains(text: str, snippet: str) -> bool:
    """Whether samples of a snippet stand in a text, however its lines were broken. One alone may be the head of a
    table, which many sections have."""
    words = snippet.replace("…", " ").split()
    starts = [len(words) * quarter // 4 for quarter in (1, 2, 3)]
    whole = " ".join(text.split())
    return all(" ".join(words[start : start + 6]) in whole for start in starts)


def _as_document(place: Place) -> str:
    """A snippet below its headings, without the sentences that it has only a part of; a row is kept as far as it is
    there."""
    lines = [line for line in place.snippet.splitlines() if not line.lstrip("…").startswith("#")]
    if len(lines) > 1 and lines[0].startswith("…") and not lines[0].startswith("…|"):
        lines[0] = " ".join(sentences(lines[0])[1:])
    if len(lines) > 1 and lines[-1].endswith("…") and not lines[-1].startswith("|"):
        lines[-1] = " ".join(sentences(lines[-1])[:-1])
    trail = [part.strip() for part in place.section.split(" > ") if part.strip()]
    headings = [f"{'#' * min(level, 6)} {title}" for level, title in enumerate(trail, 1)]
    return "\n\n".join([*headings, "\n".join(lines)])


def _says_the_same(one: Ranked, other: Ranked) -> bool:
    mine, others = roots_of(one.passage.text), roots_of(other.passage.text)
    return len(mine & others) >= 0.8 * min(len(mine), len(others))


def _by_section(chosen: Sequence[Ranked], question: Question, form: Form) -> Iterator[Extract]:
    told: set[tuple[int, tuple[str, ...]]] = set()
    for item in chosen:
        if item.place in told:
            continue
        told.add(item.place)
        positions = {other.position for other in chosen if other.place == item.place}
        source = item.source
        yield Extract(
            source.document_id,
            source.title,
            source.link,
            " > ".join(item.passage.trail),
            tuple(_completed(item, positions, question, form)),
            item.share,
            any(_defines(other, question) for other in chosen if other.place == item.place),
        )


def _defines(item: Ranked, question: Question) -> bool:
    """Whether a passage says what something is: it begins so, it is the row or the section about just that."""
    passage = item.passage
    if passage.subject:
        return question.is_just(passage.subject)
    spoken = [word.strip("`*_“”\"'.,:") for word in passage.text.split()[:_OPENING]]
    said = [position for position, word in enumerate(spoken) if word.lower() in _SAYING]
    return any(question.is_just(" ".join(spoken[:position])) for position in said) or (
        item.opens and item.heading_fit(question) == 1.0
    )


def _completed(item: Ranked, chosen: set[int], question: Question, form: Form) -> Iterator[Passage]:
    """The chosen passages of a section. How something is done is told by the whole section, where that is short and
    about it; a block of code comes with what introduces it, and the other way round."""
    every, section = item.every, item.section
    if form == "how" and _is_short(item) and _is_about(item, question):
        yield from (every[position] for position in section)
        return
    wanted = set(chosen)
    for position in chosen:
        before, after = position - 1, position + 1
        if every[position].kind == "code" and before in section and every[before].kind in {"prose", "item"}:
            wanted.add(before)
        if every[position].text.endswith(":"):
            wanted.update(_introduced(item, after, form))
        elif form == "how" and after in section and every[after].kind == "code":
            wanted.add(after)
    for position in sorted(wanted):
        passage = _shortened(every[position], question) if position in chosen else every[position]
        yield passage if position + 1 in wanted else _without_announcement(passage)


def _is_short(item: Ranked) -> bool:
    return sum(len(item.every[position].text) for position in item.section) <= _SECTION_LENGTH


def _is_about(item: Ranked, question: Question) -> bool:
    """Whether the section shows how to do something, and its heading has to do with the question."""
    has_code = any(item.every[position].kind == "code" for position in item.section)
    return has_code and question.share(roots_of(" ".join(item.passage.trail[-1:]))) > 0


def _introduced(item: Ranked, start: int, form: Form) -> list[int]:
    """What a passage that ends in a colon introduces: a block of code, or the items or rows that follow. A long example
    is left out where nobody asks how something is done."""
    if start not in item.section:
        return []
    passage = item.every[start]
    if passage.kind == "code" and form != "how" and len(passage.text) > _EXAMPLE_LENGTH:
        return []
    found = [start]
    while passage.kind in {"item", "row"} and found[-1] + 1 in item.section:
        if item.every[found[-1] + 1].kind != passage.kind:
            break
        found.append(found[-1] + 1)
    return found


def _without_announcement(passage: Passage) -> Passage:
    """A paragraph without its last sentence, if that announces what is not told here."""
    *kept, last = sentences(passage.text) if passage.kind != "code" else [""]
    return replace(passage, text=" ".join(kept)) if kept and last.endswith(":") else passage


def _shortened(passage: Passage, question: Question) -> Passage:
    """A long paragraph without the sentences that have nothing of the question; `…` stands for them."""
    if passage.kind not in {"prose", "item"} or len(passage.text) <= _PARAGRAPH_LENGTH:
        return passage
    every = sentences(passage.text)
    shares = [question.share(roots_of(sentence)) for sentence in every]
    best = max(shares)
    kept = {position for position, share in enumerate(shares) if share >= 0.6 * best}
    # A sentence is often explained by the next one.
    kept |= {shares.index(best) + 1}
    pieces: list[str] = []
    for position, sentence in enumerate(every):
        if position in kept:
            pieces.append(sentence)
        elif pieces and pieces[-1] != _GAP:
            pieces.append(_GAP)
    return replace(passage, text=" ".join(pieces).removesuffix(f" {_GAP}"))
