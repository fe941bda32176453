"""Extracts: the passages of documents that answer a question best, with the context needed to understand them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ai_platform_engineering.offline_model.english.vocabulary import word_set
from ai_platform_engineering.offline_model.knowledge.passages import Passage, sentences
from ai_platform_engineering.offline_model.knowledge.procedures import procedure
from ai_platform_engineering.offline_model.knowledge.ranking import RankedPassage, question_of, ranked
from ai_platform_engineering.offline_model.knowledge.relevance import WeightedQuestion, roots_of
from ai_platform_engineering.offline_model.knowledge.search_results import FetchedDocument, SearchHit
from ai_platform_engineering.offline_model.planning.inquiries import QuestionForm, question_form

MIN_ANSWER_SHARE = 0.5
"""The minimum share of a passage and its headings to count as an answer."""
_BELOW_ANSWER_SHARE = 0.49
_MIN_NEAREST_SHARE = 0.25
"""The minimum share to show a passage as the nearest match."""
_MIN_SCORE_RATIO = 0.75
"""Passages with this ratio to the best score are quoted too, if their share is similar as well."""
_MIN_SHARE_RATIO = 0.65
_MAX_EXTRACTS = 3
_MAX_ANSWER_LENGTH = 1200
"""Maximum characters of an answer: no further section is added beyond it."""
_MAX_SECTION_LENGTH = 1100
_MAX_PARAGRAPH_LENGTH = 420
_MAX_EXAMPLE_LENGTH = 400
_OPENING_WORDS = 8
_DEFINING_VERBS = word_set("is are means mean was were stands refers names lists says")
"""Verbs of definitions, which follow soon after their subject."""
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
    """The share of the question's terms that it contains: between 0 and 1."""
    defines: bool = False
    """Whether it defines the subject of the question."""
    missing_words: tuple[str, ...] = ()
    """Words of the question that the document of a procedure does not contain."""
    continues: str = ""
    """Where the document continues, if the extract was cut."""


def extracts(text: str, hits: Sequence[SearchHit], read: Sequence[FetchedDocument]) -> list[Extract]:
    """The extracts that answer a question, the best first; empty if too few of its words are found."""
    form = question_form(text)
    question = question_of(text, sources := list(_sources(hits, read)))
    found = ranked(question, form, hits, sources)
    if not found or found[0].share < _MIN_NEAREST_SHARE:
        return []
    if form == "how":
        near = sorted(_near(found), key=lambda item: -question.share(roots_of(item.source.title)))
        extract = next(
            filter(None, (_procedure_extract(item, question) for item in near if _is_on_topic(item, question))), None
        )
        if extract is not None:
            return [extract]
        found = [_with_capped_share(item, question) for item in found if item.source == found[0].source]
    chosen: list[RankedPassage] = []
    for item in _near(found):
        if len(chosen) == _MAX_EXTRACTS:
            break
        if not any(_is_duplicate(item, other) for other in chosen):
            chosen.append(item)
    chosen_extracts: list[Extract] = []
    for extract in _by_section(chosen, question, form):
        if chosen_extracts and _length([*chosen_extracts, extract]) > _MAX_ANSWER_LENGTH:
            break
        chosen_extracts.append(extract)
    return chosen_extracts


def _near(found: Sequence[RankedPassage]) -> Iterator[RankedPassage]:
    """The passages that score nearly as high as the best."""
    for item in found:
        if item.score < found[0].score * _MIN_SCORE_RATIO:
            return
        if item.share >= found[0].share * _MIN_SHARE_RATIO:
            yield item


def _is_on_topic(item: RankedPassage, question: WeightedQuestion) -> bool:
    """Whether the title or a heading above the passage matches the question, or the passage introduces a section.
    Otherwise the passage only mentions the subject."""
    return (item.opens and item.passage.kind == "prose") or question.share(
        roots_of(" ".join([item.source.title, *item.passage.trail]))
    ) > 0


def _with_capped_share(item: RankedPassage, question: WeightedQuestion) -> RankedPassage:
    return item if _is_on_topic(item, question) else replace(item, share=min(item.share, _BELOW_ANSWER_SHARE))


def _procedure_extract(item: RankedPassage, question: WeightedQuestion) -> Extract | None:
    """The procedure that contains a passage. Without the highest-weighted word it is not counted as an answer."""
    found = procedure(item, question)
    if found is None:
        return None
    source = item.source
    document_roots = roots_of(f"{source.title} {source.link} {source.text}")
    missing_words = tuple(term.word for term in question.weights if not term.match(document_roots))
    key_term = max(question.weights, key=lambda term: question.weights[term])
    return Extract(
        source.document_id,
        source.title,
        source.link,
        found.title,
        (Passage("procedure", found.text, (found.title,)),),
        min(item.share, _BELOW_ANSWER_SHARE) if key_term.word in missing_words else item.share,
        missing_words=missing_words,
        continues=found.continues,
    )


def _length(found: Sequence[Extract]) -> int:
    return sum(len(passage.text) for extract in found for passage in extract.passages)


def _sources(hits: Sequence[SearchHit], read: Sequence[FetchedDocument]) -> Iterator[FetchedDocument]:
    """The texts to quote from, in the order of the hits: documents that were read, and the snippets of hits that are
    not in those."""
    by_id = {document.document_id: document for document in read}
    yielded: set[str] = set()
    for hit in hits:
        document = by_id.get(hit.document_id)
        if document is not None and hit.document_id not in yielded:
            yielded.add(hit.document_id)
            yield document
        if document is None or not _contains(document.text, hit.snippet):
            yield FetchedDocument(hit.document_id, hit.title, hit.link, _as_document(hit), is_cut=True)
    yield from (document for document in read if document.document_id not in yielded)


def _contains(text: str, snippet: str) -> bool:
    """Whether three samples of a snippet are in a text, regardless of line breaks. A single sample could be a table
    header, which many sections have."""
    words = snippet.replace("…", " ").split()
    starts = [len(words) * quarter // 4 for quarter in (1, 2, 3)]
    whole = " ".join(text.split())
    return all(" ".join(words[start : start + 6]) in whole for start in starts)


def _as_document(hit: SearchHit) -> str:
    """A snippet as Markdown below its headings, without truncated sentences. Truncated table rows stay."""
    lines = [line for line in hit.snippet.splitlines() if not line.lstrip("…").startswith("#")]
    if len(lines) > 1 and lines[0].startswith("…") and not lines[0].startswith("…|"):
        lines[0] = " ".join(sentences(lines[0])[1:])
    if len(lines) > 1 and lines[-1].endswith("…") and not lines[-1].startswith("|"):
        lines[-1] = " ".join(sentences(lines[-1])[:-1])
    trail = [part.strip() for part in hit.section.split(" > ") if part.strip()]
    headings = [f"{'#' * min(level, 6)} {title}" for level, title in enumerate(trail, 1)]
    return "\n\n".join([*headings, "\n".join(lines)])


def _is_duplicate(one: RankedPassage, other: RankedPassage) -> bool:
    one_roots, other_roots = roots_of(one.passage.text), roots_of(other.passage.text)
    return len(one_roots & other_roots) >= 0.8 * min(len(one_roots), len(other_roots))


def _by_section(chosen: Sequence[RankedPassage], question: WeightedQuestion, form: QuestionForm) -> Iterator[Extract]:
    seen: set[tuple[int, tuple[str, ...]]] = set()
    for item in chosen:
        if item.section_id in seen:
            continue
        seen.add(item.section_id)
        positions = {other.position for other in chosen if other.section_id == item.section_id}
        source = item.source
        yield Extract(
            source.document_id,
            source.title,
            source.link,
            " > ".join(item.passage.trail),
            tuple(_completed(item, positions, question, form)),
            item.share,
            any(_defines(other, question) for other in chosen if other.section_id == item.section_id),
        )


def _defines(item: RankedPassage, question: WeightedQuestion) -> bool:
    """Whether a passage is a definition: by its first words, as the table row or as the section of the subject."""
    passage = item.passage
    if passage.subject:
        return question.is_exactly(passage.subject)
    opening = [word.strip("`*_“”\"'.,:") for word in passage.text.split()[:_OPENING_WORDS]]
    verb_positions = [position for position, word in enumerate(opening) if word.lower() in _DEFINING_VERBS]
    return any(question.is_exactly(" ".join(opening[:position])) for position in verb_positions) or (
        item.opens and item.heading_fit(question) == 1.0
    )


def _completed(
    item: RankedPassage, chosen: set[int], question: WeightedQuestion, form: QuestionForm
) -> Iterator[Passage]:
    """The chosen passages of a section. For a how-to question, a short section about it is quoted whole; a code block
    comes with its introduction, and the other way round."""
    passages, section = item.source_passages, item.section
    if form == "how" and _is_short(item) and _is_about(item, question):
        yield from (passages[position] for position in section)
        return
    wanted = set(chosen)
    for position in chosen:
        before, after = position - 1, position + 1
        if passages[position].kind == "code" and before in section and passages[before].kind in {"prose", "item"}:
            wanted.add(before)
        if passages[position].text.endswith(":"):
            wanted.update(_introduced(item, after, form))
        elif form == "how" and after in section and passages[after].kind == "code":
            wanted.add(after)
    for position in sorted(wanted):
        passage = _shortened(passages[position], question) if position in chosen else passages[position]
        yield passage if position + 1 in wanted else _without_announcement(passage)


def _is_short(item: RankedPassage) -> bool:
    return sum(len(item.source_passages[position].text) for position in item.section) <= _MAX_SECTION_LENGTH


def _is_about(item: RankedPassage, question: WeightedQuestion) -> bool:
    """Whether the section contains code, and its heading matches the question."""
    has_code = any(item.source_passages[position].kind == "code" for position in item.section)
    return has_code and question.share(roots_of(" ".join(item.passage.trail[-1:]))) > 0


def _introduced(item: RankedPassage, start: int, form: QuestionForm) -> list[int]:
    """The passages after a colon: a code block, or all following items or rows. A long example is only included for a
    how-to question."""
    if start not in item.section:
        return []
    passage = item.source_passages[start]
    if passage.kind == "code" and form != "how" and len(passage.text) > _MAX_EXAMPLE_LENGTH:
        return []
    found = [start]
    while passage.kind in {"item", "row"} and found[-1] + 1 in item.section:
        if item.source_passages[found[-1] + 1].kind != passage.kind:
            break
        found.append(found[-1] + 1)
    return found


def _without_announcement(passage: Passage) -> Passage:
    """A paragraph without its last sentence, if that one introduces a passage that is not quoted."""
    *selected, last = sentences(passage.text) if passage.kind != "code" else [""]
    return replace(passage, text=" ".join(selected)) if selected and last.endswith(":") else passage


def _shortened(passage: Passage, question: WeightedQuestion) -> Passage:
    """A long paragraph without the sentences that match the question least, which become `…`."""
    if passage.kind not in {"prose", "item"} or len(passage.text) <= _MAX_PARAGRAPH_LENGTH:
        return passage
    passages = sentences(passage.text)
    shares = [question.share(roots_of(sentence)) for sentence in passages]
    best = max(shares)
    selected = {position for position, share in enumerate(shares) if share >= 0.6 * best}
    # The next sentence often explains the best one.
    selected |= {shares.index(best) + 1}
    pieces: list[str] = []
    for position, sentence in enumerate(passages):
        if position in selected:
            pieces.append(sentence)
        elif pieces and pieces[-1] != _GAP:
            pieces.append(_GAP)
    return replace(passage, text=" ".join(pieces).removesuffix(f" {_GAP}"))
