"""Sentence structure: clauses, enumerations, the leading verb, and the changes that a text requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ai_platform_engineering.offline_model.english.lexical import stem, words
from ai_platform_engineering.offline_model.english.vocabulary import (
    ASKING_VERBS,
    CHANGE_VERBS,
    CREATE_VERBS,
    DETERMINERS,
    GENERAL_NOUNS,
    LIGHT_VERBS,
    NEGATIONS,
    POLITE,
    QUESTION_WORDS,
)

QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)")
_BOUNDARY = re.compile(
    r"(?P<end>(?<=[.?!;])\s+|\s*\n\s*|;\s*|,?\s+(?:and\s+then|then|and\s+also|as\s+well\s+as|plus)\s+)"
    r"|(?:,\s*and\s+|,\s+|\s+and\s+|\s+&\s+|\s+vs\.?\s+|\s+versus\s+)",
    re.I,
)
"""Possible clause boundaries: `end` is always one; the others only if a new request follows."""
_FREE_TEXT = re.compile(r"(?<=\w):\s|\b(?:saying|stating|that\s+says?)\b", re.I)
_AMBIGUOUS = frozenset({"open", "log", "set", "label", "link", "post", "release", "file"})


def quoted_texts(text: str) -> list[str]:
    return [next(group for group in match.groups() if group) for match in QUOTED.finditer(text)]


def _boundaries(text: str) -> list[re.Match[str]]:
    """Possible boundaries outside quotes and before dictated text, for example the text of a comment."""
    quoted = [match.span() for match in QUOTED.finditer(text)]
    dictated = _FREE_TEXT.search(text)
    end = dictated.end() if dictated and requested_changes(text[: dictated.start()]) else len(text)
    return [
        boundary
        for boundary in _BOUNDARY.finditer(text)
        if boundary.start() < end and not any(start < boundary.start() < stop for start, stop in quoted)
    ]


def _starts_request(part: str) -> bool:
    sequence = words(part)
    while sequence and sequence[0] in {"please", "also"}:
        sequence = sequence[1:]
    return len(sequence) > 1 and (sequence[0] in QUESTION_WORDS | ASKING_VERBS | CHANGE_VERBS)


@lru_cache(maxsize=512)
def clauses(text: str) -> tuple[str, ...]:
    """The clauses of a text: the parts that are requests or questions of their own."""
    found: list[str] = []
    start = 0
    boundaries = _boundaries(text)
    ends = [*(boundary.start() for boundary in boundaries[1:]), len(text)]
    for boundary, end in zip(boundaries, ends, strict=False):
        if boundary["end"] is not None or _starts_request(text[boundary.end() : end]):
            found.append(text[start : boundary.start()])
            start = boundary.end()
    found.append(text[start:])
    return tuple(part.strip() for part in found if words(part))


@lru_cache(maxsize=512)
def members(text: str) -> tuple[tuple[int, int], ...]:
    """The spans of the members of an enumeration: "guestbook and checkout" has two."""
    return tuple((start, end) for start, end in _spans(_boundaries(text), len(text)) if words(text[start:end]))


def leading_verb(text: str) -> str | None:
    """The verb that a request starts with, ignoring polite words; None if it starts with another word."""
    sequence = words(text)
    for position, word in enumerate(sequence):
        if word in ASKING_VERBS or (word in CHANGE_VERBS and _is_verb(sequence, position)):
            return word
        if word not in POLITE:
            return None
    return None


def from_leading_verb(text: str) -> str:
    """The request without polite words before its verb: "could you please sync it" is "sync it"."""
    verb = leading_verb(text)
    match = re.search(rf"\b{re.escape(verb)}\b", text, re.I) if verb else None
    return text[match.start() :] if match else text


def is_question(text: str) -> bool:
    sequence = words(text)
    return bool(sequence) and sequence[0] in QUESTION_WORDS and leading_verb(text) is None


def requested_changes(text: str) -> tuple[str, ...]:
    """Stems of the verbs that request a change.

    Such a verb comes first in its clause, ignoring polite words: in "please sync it", but not in "which are out of
    sync?", "sync status of guestbook" or "open incidents".
    """
    parts = [words(text[start:end]) for start, end in _spans(_BOUNDARY.finditer(text), len(text))]
    # A single word is a request only at the start of the text: "show name, owner and label" does not label anything.
    found = [_change(part) for position, part in enumerate(parts) if len(part) > 1 or position == 0]
    return tuple(dict.fromkeys(change for change in found if change))


def _spans(boundaries: Iterable[re.Match[str]], length: int) -> list[tuple[int, int]]:
    edges = [0, *(edge for boundary in boundaries for edge in boundary.span()), length]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _change(sequence: tuple[str, ...]) -> str | None:
    if sequence[:1] == ("how",):
        return None
    for position, word in enumerate(sequence):
        if word in LIGHT_VERBS and (carried := _after_light_verb(sequence[position + 1 : position + 4])):
            return stem(carried)
        if word in CHANGE_VERBS:
            return stem(word) if _is_verb(sequence, position) else None
        if word not in POLITE:
            return None
    return None


def _after_light_verb(following: tuple[str, ...]) -> str | None:
    """The change after a light verb: the sync of "trigger a sync"."""
    for word in following:
        if word in NEGATIONS:
            return None
        if word in CHANGE_VERBS - CREATE_VERBS:
            return word
    return None


def _is_verb(sequence: tuple[str, ...], position: int) -> bool:
    """Whether a possible verb is one here: it is a noun in "sync status" and an adjective in "open incidents"."""
    following = sequence[position + 1 : position + 2]
    is_noun = bool(following) and following[0] in GENERAL_NOUNS
    is_adjective = sequence[position] in _AMBIGUOUS and not DETERMINERS.intersection(following)
    return not is_noun and not is_adjective
