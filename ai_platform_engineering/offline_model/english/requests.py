"""The text of one request, and the names of things in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.lexical import is_about, stem
from ai_platform_engineering.offline_model.english.sentences import QUOTED, quoted_texts
from ai_platform_engineering.offline_model.english.vocabulary import (
    ASKING_VERBS,
    CHANGE_VERBS,
    GENERAL_NOUNS,
    QUESTION_WORDS,
    STATES,
)

NAME = r"[^\W_](?:[\w.\-/]*\w)?"
_TOKEN = re.compile(rf"#?{NAME}")
_COMPOUND = re.compile(r"[\d\-_./]")
_CONTRACTION = re.compile(r"\b\w+n['’]t\b|['’](?:s|re|ve|ll|d|m)\b", re.I)
_COMMON_STEMS = frozenset(map(stem, ASKING_VERBS | CHANGE_VERBS | GENERAL_NOUNS | STATES | QUESTION_WORDS))


@dataclass(frozen=True, slots=True)
class RequestText:
    """The text of one request, with the words that are not names in it."""

    text: str
    known: frozenset[str] = frozenset()
    """Stems that describe agents and tools and therefore are not names."""
    stated: frozenset[str] = frozenset()
    """Stems that select a value of an enumeration in this request and therefore are not names."""
    may_ask: bool = False
    """Whether missing arguments can be asked for with a form, so that they need not be guessed."""

    def may_name(self, token: str) -> bool:
        """Whether a word of the request can be the name of a thing."""
        return stem(token) not in self.stated and not is_common(token, self.known)


@lru_cache(maxsize=512)
def name_tokens(text: str) -> tuple[str, ...]:
    """Words, with compound names kept whole: `payments-api`, `acme/gitops`, `v1.2`."""
    return tuple(token.removeprefix("#") for token in _TOKEN.findall(_CONTRACTION.sub(" ", lexical.joined(text))))


@lru_cache(maxsize=16384)
def is_common(token: str, known: frozenset[str]) -> bool:
    """Whether a word is an ordinary word and no name."""
    parts = lexical.words(token)
    if len(parts) > 1 or _COMPOUND.search(token):
        return all(part.isdigit() or lexical.is_stop_word(part) or is_about(stem(part), known) for part in parts)
    return lexical.is_stop_word(token) or stem(token) in _COMMON_STEMS or is_about(stem(token), known)


@lru_cache(maxsize=512)
def request_names(request: RequestText) -> tuple[str, ...]:
    """Possible names of things, the most likely first: quoted, compound, other unknown words."""
    tokens = name_tokens(QUOTED.sub(" ", request.text))
    names = [token for token in tokens if request.may_name(token)]
    compound = [token for token in names if _COMPOUND.search(token)]
    return tuple(dict.fromkeys([*quoted_texts(request.text), *compound, *names]))
