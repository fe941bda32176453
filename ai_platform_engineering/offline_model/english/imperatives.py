"""Imperatives: requests that begin with a verb, with the words of its object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.sentences import QUOTED
from ai_platform_engineering.offline_model.english.vocabulary import (
    CREATE_VERBS,
    DETERMINERS,
    LIGHT_VERBS,
    POLITE,
    PREPOSITIONS,
    word_set,
)

_SET_UP = re.compile(r"\b(?:set|spin)(?:ting|ning)?\s+up\b|\b(?:provision|bootstrap)\b", re.I)
_WISH = re.compile(
    r"^\W*(?:please\s+)?(?:i|we)(?:['’]d|\s+would)?\s+(?:need|want|like)\s+(?=an?\b|another\b|new\b)", re.I
)
_PAUSE = ","
OBJECT_ENDS = (
    PREPOSITIONS
    | {_PAUSE}
    | word_set("""
    to called named titled that which because about so by using via and or then if when as into regarding saying without
""")
)


@dataclass(frozen=True, slots=True)
class Imperative:
    """The leading verb of a request, and the words of its object."""

    verb: str
    about: tuple[str, ...]
    determiners: frozenset[str] = frozenset()


def spoken_words(text: str) -> tuple[str, ...]:
    """The words of a request, with commas. "I need a new ..." is read as "create ..."."""
    text = _WISH.sub("create ", _SET_UP.sub("create", QUOTED.sub(" ", lexical.joined(text))))
    parts = re.sub(r"[,;]", f" {_PAUSE} ", text).split()
    return tuple(word for part in parts if (word := part.strip(".:!?()[]")))


def parse_imperative(spoken: tuple[str, ...]) -> Imperative | None:
    """The imperative in the words of a request; None if there is none."""
    if spoken and spoken[0].lower() in {"should", "must"}:
        return None
    polite = [word.lower().replace("’", "'") in POLITE | {_PAUSE} for word in spoken]
    position = polite.index(False) if False in polite else len(spoken)
    verb, following = spoken[position : position + 1], spoken[position + 1 :]
    if not verb or lexical.is_plural(verb[0]):
        return None
    if carried := _after_light_verb(verb[0].lower(), following):
        return carried
    if following and following[0].lower() in PREPOSITIONS:
        return None
    return _imperative(verb[0].lower(), following)


def _after_light_verb(verb: str, following: tuple[str, ...]) -> Imperative | None:
    """The imperative after a light verb: in "do a rollback of it" the verb is "rollback"."""
    words = [word.lower() for word in following[:3]]
    if verb in LIGHT_VERBS - CREATE_VERBS and len(words) == 3 and words[0] in DETERMINERS:
        return _imperative(words[1], following[3:]) if words[2] in {"of", "for", "on"} else None
    return None


def _imperative(verb: str, following: Sequence[str]) -> Imperative:
    """The imperative of a verb: its object ends at the next preposition."""
    words: list[str] = []
    for word in following:
        if word.lower() in OBJECT_ENDS:
            break
        words.append(word)
    determiners = frozenset(word.lower() for word in words) & (DETERMINERS - {"it", "them"})
    return Imperative(verb, tuple(word for word in words if word.lower() not in DETERMINERS | POLITE), determiners)
