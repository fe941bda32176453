"""Porter stemmer, with the same results as SQLite's full-text index: `deploys` and `deployed` have one stem."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

_MAX_LENGTH: Final = 64
"""Longer words are not stemmed, neither here nor in the index."""

_DOUBLE_SUFFIXES: Final = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("logi", "log"),
    ("bli", "ble"), ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"),
    ("ation", "ate"), ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"),
    ("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"),
)  # fmt: skip
_ADJECTIVE_SUFFIXES: Final = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_FINAL_SUFFIXES: Final = (
    "ement", "ment", "ance", "ence", "able", "ible", "ant", "ent", "ion", "ism", "ate", "iti", "ous", "ive", "ize",
    "al", "er", "ic", "ou",
)  # fmt: skip


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """`word` is in lower case."""
    if not 3 <= len(word) <= _MAX_LENGTH:
        return word
    word = _without_participle(_without_plural(word))
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    for endings in (_DOUBLE_SUFFIXES, _ADJECTIVE_SUFFIXES):
        word = _replace_suffix(word, endings)
    return _without_e(_without_last(word))


def _shape(word: str) -> str:
    """Vowels and consonants: `cvc` for `pod`. A `y` is a vowel after a consonant."""
    shape = ""
    for place, letter in enumerate(word):
        vowel = letter in "aeiou" or (letter == "y" and place > 0 and shape[-1] == "c")
        shape += "v" if vowel else "c"
    return shape


def _syllables(word: str) -> int:
    return _shape(word).count("vc")


def _ends_short(word: str) -> bool:
    return _shape(word).endswith("cvc") and word[-1] not in "wxy"


def _without_plural(word: str) -> str:
    # The whole word cannot be a suffix.
    if word[1:].endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _without_participle(word: str) -> str:
    if word[1:].endswith("eed"):
        return word[:-1] if _syllables(word[:-3]) else word
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if rest != word and "v" in _shape(rest):
            if rest.endswith(("at", "bl", "iz")):
                return rest + "e"
            # SQLite treats `y` as a consonant here, at any position.
            if rest[-1] == rest[-2:-1] and rest[-1] not in "lszaeiou":
                return rest[:-1]
            return rest + "e" if _syllables(rest) == 1 and _ends_short(rest) else rest
    return word


def _replace_suffix(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    for ending, other in endings:
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            return rest + other if _syllables(rest) else word
    return word


def _without_last(word: str) -> str:
    for ending in _FINAL_SUFFIXES:
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            removed = _syllables(rest) > 1 and (ending != "ion" or rest[-1] in "st")
            return rest if removed else word
    return word


def _without_e(word: str) -> str:
    rest = word.removesuffix("e")
    if rest != word and (_syllables(rest) > 1 or (_syllables(rest) == 1 and not _ends_short(rest))):
        word = rest
    return word[:-1] if word.endswith("ll") and _syllables(word[:-1]) > 1 else word
