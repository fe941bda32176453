"""Relevance: how much of what a question asks about a passage has, by words alone."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

from ai_platform_engineering.offline_model import language
from ai_platform_engineering.offline_model.language import similarity, stem
from ai_platform_engineering.offline_model.vocabulary import QUESTION_WORDS, word_set

_TOKEN = re.compile(r"[^\W_]+(?:_[^\W_]+)+|[^\W_]+")
_PROPER = re.compile(r"^[A-Z]")
_IDENTIFIER_WEIGHT = 2.0
_VERB_WEIGHT = 0.6
_ALIKE = 0.5

_IRREGULAR = {
    "kept": "keep", "ran": "run", "written": "write", "wrote": "write", "sent": "send", "made": "make",
    "found": "find", "chosen": "choose", "chose": "choose", "built": "build", "shown": "show", "left": "leave",
    "lost": "lose", "held": "hold", "told": "tell", "given": "give", "began": "begin", "begun": "begin", "died": "die",
}  # fmt: skip
_ALIKE_WORDS = tuple(
    word_set(group)
    for group in (
        "off disable switch turn deactivate",
        "keep store save hold remember kept",
        "start launch serve begin run",
        "stop end quit kill terminate finish complete",
        "remove delete drop forget",
        "setting variable option parameter configuration",
        "configure set setup",
        "permit allow",
        "change modify edit",
        "long time seconds hours days",
        "outside remote distributed",
        "key token credential",
        "address url",
        "add write create own",
        "fail failure error problem wrong",
        "password secret key",
        "require need",
        "answer reply respond",
    )
)
"""Words that can stand for one another in an explanation, though they do not mean the same."""


def _alike() -> dict[str, frozenset[str]]:
    groups: dict[str, frozenset[str]] = {}
    for group in _ALIKE_WORDS:
        stems = frozenset(map(stem, group))
        for word in stems:
            groups[word] = groups.get(word, frozenset()) | stems
    return groups


_GROUPS = _alike()


@lru_cache(maxsize=16384)
def root(word: str) -> str:
    """The stem of a word, also of an adverb and of an irregular form: "remotely" is "remote", "kept" is "keep"."""
    lower = word.lower()
    lower = _IRREGULAR.get(lower, lower)
    return stem(lower[:-2]) if len(lower) > 5 and lower.endswith("ly") else stem(lower)


@dataclass(frozen=True, slots=True)
class Term:
    """A word that is asked about: its root, and what may be written instead."""

    root: str
    spellings: frozenset[str] = frozenset()
    is_identifier: bool = False
    word: str = field(default="", compare=False)
    """As it is spelled in the question."""

    def match(self, roots: frozenset[str]) -> float:
        """How much the roots of a text have of the term."""
        if self.root in roots or self.spellings & roots:
            return 1.0
        best = max((similarity(self.root, other) for other in roots), default=0.0)
        return best or (_ALIKE if _GROUPS.get(self.root, frozenset()) & roots else 0.0)


def _terms(words: Sequence[str]) -> tuple[Term, ...]:
    """The terms of a question's words. A proper name of two words may be written as one: "Argo CD" and "ArgoCD"."""
    pairs: dict[str, frozenset[str]] = {}
    for one, other in pairwise(words):
        if _PROPER.match(one) and _PROPER.match(other):
            whole = frozenset({stem(one + other)})
            pairs[one], pairs[other] = pairs.get(one, frozenset()) | whole, pairs.get(other, frozenset()) | whole
    found = {
        term.root: term
        for word in words
        if (term := Term(root(word), pairs.get(word, frozenset()), "_" in word, word)).root
    }
    return tuple(found.values())


@lru_cache(maxsize=8192)
def roots_of(text: str) -> frozenset[str]:
    """The roots of all words of a text: identifiers as wholes and in parts, neighbouring proper names also as one."""
    tokens = _TOKEN.findall(language.joined(text))
    found = {root(part) for token in tokens for part in (token, *token.split("_"))}
    found |= {stem(one + other) for one, other in pairwise(tokens) if _PROPER.match(one) and _PROPER.match(other)}
    return frozenset(found)


@lru_cache(maxsize=8192)
def pairs_of(text: str) -> frozenset[tuple[str, str]]:
    """The roots of words that follow one another, of which at least one says something by itself."""
    tokens = _TOKEN.findall(language.joined(text))
    return frozenset(
        (root(one), root(other))
        for one, other in pairwise(tokens)
        if not (language.is_stop_word(one) and language.is_stop_word(other))
    )


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about: terms, and how telling each is."""

    weights: Mapping[Term, float]
    pairs: frozenset[tuple[str, str]] = frozenset()
    """Words that follow one another in it."""
    echo: re.Pattern[str] | None = None
    """The question itself, which answers nothing where a text quotes it."""

    def roots(self, text: str) -> frozenset[str]:
        return roots_of(self.echo.sub(" ", text) if self.echo else text)

    def wording(self, text: str) -> float:
        """How much of the question a text has word for word: between 0 and 1."""
        text = self.echo.sub(" ", text) if self.echo else text
        return len(self.pairs & pairs_of(text)) / len(self.pairs) if self.pairs else 0.0

    def is_just(self, text: str) -> bool:
        """Whether a text names all that is asked about and nothing else."""
        tokens = [token for token in _TOKEN.findall(language.joined(text)) if not language.is_stop_word(token)]
        named = [frozenset({root(token)}) for token in tokens]
        return self.share(frozenset().union(*named)) == 1.0 and all(map(self.share, named))

    def share(self, roots: frozenset[str]) -> float:
        """How much of what is asked about a text has: between 0 and 1."""
        return self.share_of((roots, 1.0))

    def share_of(self, *texts: tuple[frozenset[str], float]) -> float:
        """The same for several texts, of which each counts as much as is given with it."""
        total = sum(self.weights.values())
        gained = sum(
            weight * max(worth * term.match(roots) for roots, worth in texts) for term, weight in self.weights.items()
        )
        return gained / total if total else 0.0


def question(text: str, words: Sequence[str], passages: Sequence[str], verb: str = "") -> Question:
    """The question in a text, with the words that its answer should have. The fewer of the passages have a word, the
    more telling it is; one that none has is the most telling. The verb of what is to be done tells less."""
    asked = Question({}, pairs_of(text), _echo(text))
    texts = [asked.roots(passage) for passage in passages]
    done = root(verb) if len(words) > 1 else ""
    found: dict[Term, float] = {}
    for term in _terms(words):
        having = sum(1 for roots in texts if term.root in roots or term.spellings & roots)
        rarity = math.log(1 + len(texts) / (having + 0.5))
        found[term] = rarity * (
            _IDENTIFIER_WEIGHT if term.is_identifier else _VERB_WEIGHT if term.root == done else 1.0
        )
    return replace(asked, weights=found)


def _echo(text: str) -> re.Pattern[str] | None:
    """A pattern for a whole question. A few words that are looked for are none."""
    spoken = _TOKEN.findall(text)
    if len(spoken) < 3 or spoken[0].lower() not in QUESTION_WORDS:
        return None
    return re.compile(r"\W+".join(map(re.escape, spoken)), re.I)
