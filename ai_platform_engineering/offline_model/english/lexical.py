"""Lexical analysis: words of a text, light stems, stop words, and the similarity of two stems."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from ai_platform_engineering.offline_model.english.vocabulary import (
    ASSOCIATIONS,
    NEGATIONS,
    PHRASES,
    PREPOSITIONS,
    STOP_WORDS,
    SYNONYMS,
)

SYNONYM = 0.8
_DERIVED = 0.7
_DERIVATIONS = ("ment", "ation", "ion", "er", "or", "ee", "ance", "ure", "al", "y")

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PHRASES = tuple((re.compile(pattern, re.I), replacement) for pattern, replacement in PHRASES)
_PROPER_PAIR = re.compile(r"\b([A-Z]\w*) ([A-Z]\w*)\b")
_VOWEL = re.compile(r"[aeiouy]")
_EXAMPLES = re.compile(r"\b(?:such as|e\.g\.|for example|for instance)\s[^.;)]*|\S*\w[-/#_]\w\S*", re.I)


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A light stem: equal for singular and plural, and for the usual verb endings."""
    word = word.lower().replace("’", "'").removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        base = word.removesuffix(ending)
        if base != word and len(base) >= 3 and _VOWEL.search(base):
            word = base[:-1] if len(base) > 3 and base[-1] == base[-2] and base[-1] not in "lsz" else base
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


@lru_cache(maxsize=512)
def joined(text: str) -> str:
    """The text with fixed phrases joined into one word: "pull requests" becomes "pullrequests"."""
    for pattern, replacement in _PHRASES:
        text = pattern.sub(replacement, text)
    return text


def phrase_spans(text: str) -> list[tuple[int, int]]:
    """The spans of fixed phrases in the text."""
    return [match.span() for pattern, _ in _PHRASES for match in pattern.finditer(text)]


@lru_cache(maxsize=512)
def words(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, fixed phrases joined into one word."""
    return tuple(word.lower().replace("’", "'") for word in _WORD.findall(joined(text)))


@lru_cache(maxsize=512)
def identifier_words(name: str) -> tuple[str, ...]:
    """The words inside an identifier: snake_case, kebab-case, camelCase."""
    return words(spaced(name))


def spaced(name: str) -> str:
    return " ".join(_CAMEL.split(name.replace("_", " ").replace("-", " "))).strip()


@lru_cache(maxsize=512)
def stems(text: str) -> tuple[str, ...]:
    """Stems of all words, in order."""
    return tuple(stem(word) for word in words(text))


@lru_cache(maxsize=512)
def terms(text: str) -> tuple[str, ...]:
    """Stems of the words that are not stop words, in order, without duplicates."""
    return tuple(dict.fromkeys(stem(word) for word in words(text) if word not in STOP_WORDS))


@lru_cache(maxsize=512)
def description_terms(description: str) -> frozenset[str]:
    """The terms of a description without its examples, which are names of things.

    A proper name of two words also counts as one word: people write "ArgoCD" for "Argo CD".
    """
    text = _EXAMPLES.sub(" ", joined(description))
    return frozenset(terms(text)).union(stem(one + other) for one, other in _PROPER_PAIR.findall(text))


def is_stop_word(word: str) -> bool:
    return word.lower() in STOP_WORDS


def _synonym_groups() -> dict[str, frozenset[str]]:
    groups: dict[str, frozenset[str]] = {}
    for synonyms in SYNONYMS:
        group = frozenset(stem(word) for word in synonyms)
        for word in group:
            groups[word] = groups.get(word, frozenset()) | group
    return groups


_GROUPS = _synonym_groups()
_ASSOCIATIONS = {stem(word): frozenset(map(stem, others)) for word, others in ASSOCIATIONS.items()}


def associated(term: str) -> frozenset[str]:
    """Stems of related words that are not synonyms."""
    return _ASSOCIATIONS.get(term, frozenset())


@lru_cache(maxsize=32768)
def similarity(one: str, other: str) -> float:
    """The similarity of two stems: 1 if equal, less for a synonym or a derivation, else 0."""
    if one == other:
        return 1.0
    if one in _GROUPS.get(other, ()):
        return SYNONYM
    shorter, longer = sorted((one, other), key=len)
    ending = longer[len(shorter) :]
    # A short word plus "y" is usually a different word: "story" does not derive from "store".
    if len(shorter) >= (5 if ending == "y" else 4) and longer.startswith(shorter) and ending in _DERIVATIONS:
        return _DERIVED
    return 0.0


def best_similarity(term: str, vocabulary: Iterable[str]) -> float:
    return max((similarity(term, word) for word in vocabulary), default=0.0)


@lru_cache(maxsize=16384)
def is_about(term: str, vocabulary: frozenset[str]) -> bool:
    """Whether a stem is similar to one in the vocabulary."""
    return term in vocabulary or any(similarity(term, word) > 0 for word in vocabulary)


@lru_cache(maxsize=512)
def location_terms(text: str) -> frozenset[str]:
    """Stems of the words after a preposition: they usually name a location, not the subject.

    Not before a number: "in incident 12" is about an incident.
    """
    spoken = [word for word in words(text) if word not in {"the", "a", "an"}]
    return frozenset(
        stem(word)
        for before, word, after in zip(spoken, spoken[1:], [*spoken[2:], ""], strict=False)
        if before in PREPOSITIONS and not any(character.isdigit() for character in after)
    )


def contains_phrase(text: str, phrase: tuple[str, ...]) -> bool:
    """Whether the stems of `phrase` occur next to each other in the text."""
    return bool(_positions(stems(text), phrase))


def states(text: str, phrase: tuple[str, ...]) -> bool | None:
    """Whether the text states `phrase`: True, False when it is negated, None when it is absent.

    Words are compared without stemming, because endings matter in states: "sync" is not "synced".
    """
    spoken = words(text)
    positions = _positions(tuple(map(singular, spoken)), tuple(map(singular, phrase)))
    if not positions:
        return None
    return not any(NEGATIONS.intersection(spoken[max(0, start - 2) : start]) for start in positions)


def singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def is_plural(word: str) -> bool:
    return singular(word.lower()) != word.lower()


def _positions(spoken: tuple[str, ...], phrase: tuple[str, ...]) -> list[int]:
    size = len(phrase)
    if not size:
        return []
    return [start for start in range(len(spoken) - size + 1) if spoken[start : start + size] == phrase]
