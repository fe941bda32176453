"""Inquiries: questions for the knowledge base, with their search query and their topic in a sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.vocabulary import (
    CHANGE_VERBS,
    DETERMINERS,
    GENERAL_NOUNS,
    PREPOSITIONS,
    STATES,
    word_set,
)

_MAX_QUERY = 300

QuestionForm = Literal["how", "what", "open"]
"""Whether a question asks how to do something, what something is, or something else."""

IDENTIFIER = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9]\b")
"""The name of a setting or a constant. Only documents explain those, so a question with one is an inquiry."""

_LEAD = re.compile(
    r"^\W*(?:(?:please|hi|hello|hey|ok|okay|so|and|also|then|now|well|but)\b[\s,]*)*"
    r"(?:(?:can|could|would|will)\s+(?:you|we|i)\s+(?:please\s+|kindly\s+)?"
    r"(?=tell|show|explain|teach|remind|search|look|find|describe|define|check|help|summari[sz]e)"
    r"|(?:i|we)(?:['’]d|\s+would)?\s+(?:want|need|like)\s+to\s+(?:know|understand|learn|find\s+out|see)\s+"
    r"|do\s+you\s+know\s+|i\s+(?:wonder|was\s+wondering|am\s+wondering)\s+)?(?:please\s+)?",
    re.I,
)
_TELL_ME = re.compile(
    r"^(?:(?:tell|show|teach|remind)\s+(?:me|us)|help\s+(?:me|us)\s+(?:to\s+)?(?:understand|learn))\s+", re.I
)

_KIND_OF_DOCUMENT = (
    r"runbooks?|playbooks?|guides?|manuals?|handbooks?|tutorials?|readme|faq|release\s+notes|polic(?:y|ies)"
)
_DOCUMENT = rf"(?P<document>{_KIND_OF_DOCUMENT}|docs?|documentation|documents?|knowledge[\s-]*base|kb)"
_ADJECTIVES = r"(?:(?!of\b|in\b|for\b|on\b|and\b)[\w-]+\s+){0,2}?"
_THE_DOCUMENT = rf"(?:(?:the|our|your|its|my|any|a|an)\s+)?{_ADJECTIVES}{_DOCUMENT}"
_DOCUMENT_ENDS = (
    r"(?=\s*(?:[?.!,;:]|$)|\s+(?:says?|saying|about|on|for|of|and|how|what|where|which|why|to|is|are|do|does|tells?)\b)"
)
_SEARCHES_DOCUMENTS = re.compile(
    rf"^(?:search|consult|check|query|browse|read|ask|look|find|see)\b(?P<before>.*?)"
    rf"\b(?:(?:in|into|through|up|at|from)\s+)?(?:the|our|your|its)\s+{_DOCUMENT}{_DOCUMENT_ENDS}"
    r"(?:\s+(?:for|about|on|to\s+(?:find|see|learn)(?:\s+out)?))?\s*(?P<after>.*)$",
    re.I,
)
_DOCUMENTS_SAY = re.compile(
    rf"^(?:what|where|which|how)\s+(?:do|does|did)\s+{_THE_DOCUMENT}\s+"
    r"(?:say|tell|mention|state|recommend|describe|explain|cover)s?"
    r"(?:\s+(?:us|me))?(?:\s+(?:about|on|of|for|regarding|to))?\s*(?P<after>.*)$",
    re.I,
)
_IS_THERE = re.compile(
    rf"^(?:is|are)\s+there\s+{_THE_DOCUMENT}{_DOCUMENT_ENDS}(?:\s+(?:for|about|on|of|to|that\s+\w+))?\s*(?P<after>.*)$",
    re.I,
)
_ACCORDING = re.compile(
    r"\b(?:according\s+to|as\s+per|per|based\s+on|in|from|by)\s+(?:the|our|your|its)\s+"
    rf"{_ADJECTIVES}{_DOCUMENT}{_DOCUMENT_ENDS}[\s,:]*",
    re.I,
)
_DOCUMENTED = re.compile(r"\b(?:un)?documented\b", re.I)

HOW_TO = re.compile(
    r"^(?:how\s+to\b|how\s+(?:do|does|can|could|should|would|must|might|may)\s+(?!.*\b(?:look|looking|doing|going)\W*$)"
    r"|(?:what|which)\s+(?:is|are)\s+the\s+(?:\w+\s+)?(?:way|ways|steps?|procedure|process|instructions?)"
    r"\s+(?:to|for|of)\b|(?:what|which\s+\w+)\s+(?:do|must|should|would|can)\s+(?:i|we|you|one)\s+"
    r"(?:have|need|set|do|write|type|run|use|configure|install|call|send|choose)\b|(?:explain|describe)\s+how\b)",
    re.I,
)
WHAT_IT_DOES = re.compile(
    r"^(?:what|how)\s+(?:does|do|did|can|could|should|would|will|must)\s+.+?\s"
    r"(?:(?:do|mean|stand\s+for|work)\W*$|do\s+(?:with|when|if|about|at|on|after)\b)",
    re.I,
)
WHAT_FOR = re.compile(
    r"^what(?:\s+(?:is|are)|['’]s)\s+(?:(?:the\s+)?(?:difference|purpose|meaning|definition|point|idea|role|default)s?\b"
    r"|meant\b|.+\bfor\W*$|the\s.+?\s(?:when|if)\s)|^what\s+happens\b|^(?:define|the\s+meaning\s+of|the\s+definition\s+of)\b",
    re.I,
)
_EXPLAIN = re.compile(r"^(?:explain|describe|define|about)\s+(?!how\b|why\b|when\b|what\b)(?:[\w'’-]+\W*){1,4}$", re.I)
_DEFINITION = re.compile(r"^(?:what|who)(?:\s+(?:is|are)|['’]s)\s+(?P<subject>[^,;:?]+?)\W*$", re.I)
_STATE_WORDS = STATES | GENERAL_NOUNS | word_set("on happening going new next oncall affected planned due late mine")
_WAYS = word_set("way ways step steps procedure process instructions")
"""Nouns in how-to questions that an answer need not contain."""
_ARTICLES = word_set("a an the")
_EMPTY = word_set("""
    mean means work works say says happen happens explain describe define search find look know tell get see documented
""")
"""Verbs of questions that an answer need not contain. After an article they are nouns: "the search"."""

_TOPICS = (
    (r"how\s+(?:do|can|could|should|would)\s+(?:i|we|you|one)\s+(?P<rest>.+)", r"how to \g<rest>"),
    (r"how\s+to\s+(?P<rest>.+)", r"how to \g<rest>"),
    (r"what\s+does\s+(?P<subject>.+?)\s+do", r"what \g<subject> does"),
    (r"what\s+does\s+(?P<subject>.+?)\s+(?P<verb>mean|say)(?P<rest>\s.+)?", r"what \g<subject> \g<verb>s\g<rest>"),
    (r"what\s+do\s+(?P<subject>.+?)\s+(?P<verb>do|mean|say)(?P<rest>\s.+)?", r"what \g<subject> \g<verb>\g<rest>"),
    (r"(?:explain|describe|define|about|search\s+for|find|look\s+up)\s+(?P<rest>.+)", r"\g<rest>"),
)
"""Questions, and how they read after "search the knowledge base for"."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One question for the knowledge base: the original text and the search query."""

    question: str
    query: str
    topic: str
    """How the question reads after "search the knowledge base for"."""


def inquiry(question: str) -> Inquiry:
    text = without_politeness(question).rstrip(" ?.!,;:")
    return Inquiry(question.strip(), _query(text)[:_MAX_QUERY], _topic(text))


@lru_cache(maxsize=512)
def without_politeness(clause: str) -> str:
    """The clause without polite words and without a lead like "tell me"."""
    return _TELL_ME.sub("", _LEAD.sub("", clause.strip(), count=1), count=1).strip()


def question_form(question: str) -> QuestionForm:
    text = without_politeness(question)
    if HOW_TO.match(text) and lexical.words(text)[0] in {"what", "which"}:
        return "how"
    if any(pattern.match(text) for pattern in (WHAT_IT_DOES, _DEFINITION, WHAT_FOR, _EXPLAIN)):
        return "what"
    is_looked_for = _IS_THERE.match(text) or re.match(rf"(?:{_KIND_OF_DOCUMENT})\s+\w", text, re.I)
    return "how" if HOW_TO.match(text) or is_looked_for else "open"


def content_words(question: str) -> list[str]:
    """The words of a question that its answer should contain, as they are spelled."""
    spoken = re.findall(r"[^\W_]\w*(?:['’]\w+)?", lexical.joined(without_politeness(question)))
    found = [
        word
        for before, word in pairwise(["", *spoken])
        if not lexical.is_stop_word(word)
        and (word.lower() not in _EMPTY or before.lower() in _ARTICLES)
        and not (word.lower() in _WAYS and HOW_TO.match(without_politeness(question)))
    ]
    # A runbook need not contain the word "runbook".
    return [word for word in found if not re.fullmatch(_KIND_OF_DOCUMENT, word, re.I)] or found


def mentions_documents(text: str) -> bool:
    """Whether a text (without politeness) asks for the content of documents."""
    patterns = (_SEARCHES_DOCUMENTS, _DOCUMENTS_SAY, _IS_THERE)
    return any(pattern.match(text) for pattern in patterns) or bool(_ACCORDING.search(text) or _DOCUMENTED.search(text))


def only_mentions_documents(text: str) -> bool:
    """Whether a text only refers to documents: "according to the docs"."""
    return bool(_ACCORDING.search(text)) and not content_words(_ACCORDING.sub("", text))


def documents_mentioned(text: str) -> frozenset[str]:
    """Stems of the words for documents in a text."""
    return frozenset(lexical.stem(match["document"]) for match in re.finditer(rf"\b{_DOCUMENT}\b", text, re.I))


def defined_subject(text: str) -> str | None:
    """The subject whose definition a text (without politeness) asks for. Questions for the state of a thing, or for a
    list of things, are no definitions."""
    match = _DEFINITION.match(text)
    if match is None or text[:3].lower() == "who":
        return None
    spoken = lexical.words(match["subject"])
    if spoken[:1] in {("a",), ("an",)}:
        return match["subject"]
    is_plain = not (DETERMINERS | PREPOSITIONS | _STATE_WORDS | CHANGE_VERBS).intersection(spoken)
    return match["subject"] if is_plain and 0 < len(spoken) <= 4 else None


def _query(text: str) -> str:
    for pattern in (_SEARCHES_DOCUMENTS, _DOCUMENTS_SAY, _IS_THERE):
        if (match := pattern.match(text)) and (about := _sought(match)):
            named = match["document"] if re.fullmatch(_KIND_OF_DOCUMENT, match["document"], re.I) else ""
            return f"{named} {about}".strip()
    return _without_documents(text)


def _sought(match: re.Match[str]) -> str:
    """The subject of a document search: X in "search the docs for X" and "look X up in the docs"."""
    groups = match.groupdict("")
    before = re.sub(
        r"^\s*(?:for|up|in|into|through)\b|\b(?:up|in|at|through)\s*$", "", groups.get("before", ""), flags=re.I
    )
    return groups["after"].strip(" ,:.?!") or before.strip(" ,:")


def _without_documents(text: str) -> str:
    """The text without a phrase like "according to the docs", unless nothing else remains."""
    rest = _ACCORDING.sub("", text).strip(" ,:")
    return rest if content_words(rest) else text


def _topic(text: str) -> str:
    if _SEARCHES_DOCUMENTS.match(text):
        return _query(text)
    plain = _without_documents(text)
    for pattern, replacement in _TOPICS:
        if match := re.fullmatch(pattern, plain, re.I):
            return match.expand(replacement)
    if subject := defined_subject(plain):
        return f"what {subject} {'are' if 'are' in lexical.words(plain)[:2] else 'is'}"
    return f"an answer to “{plain}”"
