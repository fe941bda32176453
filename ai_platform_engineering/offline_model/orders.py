"""An order: a request that begins with a verb, with the words for what it is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ai_platform_engineering.offline_model import language
from ai_platform_engineering.offline_model.sentences import QUOTED
from ai_platform_engineering.offline_model.vocabulary import (
    CARRIER_VERBS,
    CREATE_VERBS,
    DETERMINERS,
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
class Order:
    """What a request asks to be done: the verb it leads with, and the words for what it is about."""

    verb: str
    about: tuple[str, ...]
    determiners: frozenset[str] = frozenset()


def spoken_words(text: str) -> tuple[str, ...]:
    """The words of a request, with its pauses. A wish for something new is read as a request to create it."""
    text = _WISH.sub("create ", _SET_UP.sub("create", QUOTED.sub(" ", language.joined(text))))
    parts = re.sub(r"[,;]", f" {_PAUSE} ", text).split()
    return tuple(word for part in parts if (word := part.strip(".:!?()[]")))


def read_order(spoken: tuple[str, ...]) -> Order | None:
    """The order that the words of a request give; None where they give none."""
    if spoken and spoken[0].lower() in {"should", "must"}:
        return None
    polite = [word.lower().replace("’", "'") in POLITE | {_PAUSE} for word in spoken]
    position = polite.index(False) if False in polite else len(spoken)
    verb, following = spoken[position : position + 1], spoken[position + 1 :]
    if not verb or language.is_plural(verb[0]):
        return None
    if carried := _carried(verb[0].lower(), following):
        return carried
    if following and following[0].lower() in PREPOSITIONS:
        return None
    return _about(verb[0].lower(), following)


def _carried(verb: str, following: tuple[str, ...]) -> Order | None:
    """The order in "do a rollback of it": the verb is the rollback."""
    words = [word.lower() for word in following[:3]]
    if verb in CARRIER_VERBS - CREATE_VERBS and len(words) == 3 and words[0] in DETERMINERS:
        return _about(words[1], following[3:]) if words[2] in {"of", "for", "on"} else None
    return None


def _about(verb: str, following: Sequence[str]) -> Order:
    """The verb with the words up to the next preposition."""
    words: list[str] = []
    for word in following:
        if word.lower() in OBJECT_ENDS:
            break
        words.append(word)
    determiners = frozenset(word.lower() for word in words) & (DETERMINERS - {"it", "them"})
    return Order(verb, tuple(word for word in words if word.lower() not in DETERMINERS | POLITE), determiners)
