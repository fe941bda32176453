"""A single request and the names of particular things in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ai_platform_engineering.offline_model import language
from ai_platform_engineering.offline_model.language import is_about, stem
from ai_platform_engineering.offline_model.sentences import QUOTED, quoted_texts
from ai_platform_engineering.offline_model.vocabulary import (
    ASKING_VERBS,
    CHANGE_VERBS,
    GENERAL_NOUNS,
    QUESTION_WORDS,
    STATES,
)

NAME = r"[^\W_](?:[\w.\-/]*\w)?"
_TOKEN = re.compile(rf"#?{NAME}")
_MARKED = re.compile(r"[\d\-_./]")
_CONTRACTION = re.compile(r"\b\w+n['’]t\b|['’](?:s|re|ve|ll|d|m)\b", re.I)
_COMMON_STEMS = frozenset(map(stem, ASKING_VERBS | CHANGE_VERBS | GENERAL_NOUNS | STATES | QUESTION_WORDS))


@dataclass(frozen=True, slots=True)
class Request:
    """One thing that is asked for."""

    text: str
    known: frozenset[str] = frozenset()
    """Stems that name no particular thing: they describe agents and tools."""
    stated: frozenset[str] = frozenset()
    """Stems that state a condition in this request, and so name no thing either."""
    may_ask: bool = False
    """What the request does not say can be asked for, so it is not guessed."""

    def may_name(self, token: str) -> bool:
        """Whether a word of the request looks like the name of a particular thing."""
        return stem(token) not in self.stated and not is_common(token, self.known)


@lru_cache(maxsize=512)
def name_tokens(text: str) -> tuple[str, ...]:
    """Words, with what holds a name together: `payments-api`, `acme/gitops`, `v1.2`."""
    return tuple(token.removeprefix("#") for token in _TOKEN.findall(_CONTRACTION.sub(" ", language.joined(text))))


@lru_cache(maxsize=16384)
def is_common(token: str, known: frozenset[str]) -> bool:
    """Whether a word is an ordinary one, which names no particular thing."""
    parts = language.words(token)
    if len(parts) > 1 or _MARKED.search(token):
        return all(part.isdigit() or language.is_stop_word(part) or is_about(stem(part), known) for part in parts)
    return language.is_stop_word(token) or stem(token) in _COMMON_STEMS or is_about(stem(token), known)


@lru_cache(maxsize=512)
def request_names(request: Request) -> tuple[str, ...]:
    """Words that look like the name of a particular thing, the likeliest first."""
    tokens = name_tokens(QUOTED.sub(" ", request.text))
    names = [token for token in tokens if request.may_name(token)]
    marked = [token for token in names if _MARKED.search(token)]
    return tuple(dict.fromkeys([*quoted_texts(request.text), *marked, *names]))
