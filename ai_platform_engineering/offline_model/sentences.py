"""Sentences: where a text falls into clauses and enumerations, and what it asks to be done."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ai_platform_engineering.offline_model.language import stem, words
from ai_platform_engineering.offline_model.vocabulary import (
    ASKING_VERBS,
    CARRIER_VERBS,
    CHANGE_VERBS,
    CREATE_VERBS,
    DETERMINERS,
    GENERAL_NOUNS,
    NEGATIONS,
    POLITE,
    QUESTION_WORDS,
)

QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)")
_CUT = re.compile(
    r"(?P<end>(?<=[.?!;])\s+|\s*\n\s*|;\s*|,?\s+(?:and\s+then|then|and\s+also|as\s+well\s+as|plus)\s+)"
    r"|(?:,\s*and\s+|,\s+|\s+and\s+|\s+&\s+|\s+vs\.?\s+|\s+versus\s+)",
    re.I,
)
"""Where a text may fall apart: at `end` it does; elsewhere only if what follows asks for something of its own."""
_FREE_TEXT = re.compile(r"(?<=\w):\s|\b(?:saying|stating|that\s+says?)\b", re.I)
_AMBIGUOUS = frozenset({"open", "log", "set", "label", "link", "post", "release", "file"})


def quoted_texts(text: str) -> list[str]:
    return [next(group for group in match.groups() if group) for match in QUOTED.finditer(text)]


def _cuts(text: str) -> list[re.Match[str]]:
    """Cuts outside quotes and before what is to be written down word for word."""
    quoted = [match.span() for match in QUOTED.finditer(text)]
    dictated = _FREE_TEXT.search(text)
    end = dictated.end() if dictated and requested_changes(text[: dictated.start()]) else len(text)
    return [
        cut
        for cut in _CUT.finditer(text)
        if cut.start() < end and not any(start < cut.start() < stop for start, stop in quoted)
    ]


def _opens_clause(part: str) -> bool:
    sequence = words(part)
    while sequence and sequence[0] in {"please", "also"}:
        sequence = sequence[1:]
    return len(sequence) > 1 and (sequence[0] in QUESTION_WORDS | ASKING_VERBS | CHANGE_VERBS)


@lru_cache(maxsize=512)
def clauses(text: str) -> tuple[str, ...]:
    """The clauses of a text: parts that each ask for something of their own."""
    found: list[str] = []
    start = 0
    cuts = _cuts(text)
    ends = [*(cut.start() for cut in cuts[1:]), len(text)]
    for cut, end in zip(cuts, ends, strict=False):
        if cut["end"] is not None or _opens_clause(text[cut.end() : end]):
            found.append(text[start : cut.start()])
            start = cut.end()
    found.append(text[start:])
    return tuple(part.strip() for part in found if words(part))


@lru_cache(maxsize=512)
def members(text: str) -> tuple[tuple[int, int], ...]:
    """Where the members of an enumeration stand in the text: "guestbook and checkout" has two."""
    return tuple((start, end) for start, end in _spans(_cuts(text), len(text)) if words(text[start:end]))


def leading_verb(text: str) -> str | None:
    """The verb a request starts with, apart from politeness, if it starts with one."""
    sequence = words(text)
    for position, word in enumerate(sequence):
        if word in ASKING_VERBS or (word in CHANGE_VERBS and _is_verb(sequence, position)):
            return word
        if word not in POLITE:
            return None
    return None


def from_leading_verb(text: str) -> str:
    """The request without the politeness before its verb: "could you please sync it" is "sync it"."""
    verb = leading_verb(text)
    match = re.search(rf"\b{re.escape(verb)}\b", text, re.I) if verb else None
    return text[match.start() :] if match else text


def is_question(text: str) -> bool:
    sequence = words(text)
    return bool(sequence) and sequence[0] in QUESTION_WORDS and leading_verb(text) is None


def requested_changes(text: str) -> tuple[str, ...]:
    """Stems of the verbs with which the text asks for a change.

    A verb asks when it leads its clause, apart from politeness: "please sync it" does; "which are out of sync?",
    "sync status of guestbook" and "open incidents" do not.
    """
    parts = [words(text[start:end]) for start, end in _spans(_CUT.finditer(text), len(text))]
    # A lone verb is a request only when nothing comes before it: "show name, owner and label" asks for no label.
    found = [_change(part) for position, part in enumerate(parts) if len(part) > 1 or position == 0]
    return tuple(dict.fromkeys(change for change in found if change))


def _spans(cuts: Iterable[re.Match[str]], length: int) -> list[tuple[int, int]]:
    edges = [0, *(edge for cut in cuts for edge in cut.span()), length]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _change(sequence: tuple[str, ...]) -> str | None:
    if sequence[:1] == ("how",):
        return None
    for position, word in enumerate(sequence):
        if word in CARRIER_VERBS and (carried := _carried(sequence[position + 1 : position + 4])):
            return stem(carried)
        if word in CHANGE_VERBS:
            return stem(word) if _is_verb(sequence, position) else None
        if word not in POLITE:
            return None
    return None


def _carried(following: tuple[str, ...]) -> str | None:
    """The change that a carrying verb lends itself to."""
    for word in following:
        if word in NEGATIONS:
            return None
        if word in CHANGE_VERBS - CREATE_VERBS:
            return word
    return None


def _is_verb(sequence: tuple[str, ...], position: int) -> bool:
    """Whether a word that can be a verb is one here: not in "sync status", not in "open incidents"."""
    following = sequence[position + 1 : position + 2]
    is_noun = bool(following) and following[0] in GENERAL_NOUNS
    is_adjective = sequence[position] in _AMBIGUOUS and not DETERMINERS.intersection(following)
    return not is_noun and not is_adjective
