"""Relevance: the weighted share of a question's terms that a text contains."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.lexical import similarity, stem
from ai_platform_engineering.offline_model.english.vocabulary import QUESTION_WORDS, word_set

_TOKEN = re.compile(r"[^\W_]+(?:_[^\W_]+)+|[^\W_]+")
_PROPER = re.compile(r"^[A-Z]")
_IDENTIFIER_WEIGHT = 2.0
_VERB_WEIGHT = 0.6
_INTERCHANGEABLE_SCORE = 0.5

_IRREGULAR = {
    "kept": "keep", "ran": "run", "written": "write", "wrote": "write", "sent": "send", "made": "make",
    "found": "find", "chosen": "choose", "chose": "choose", "built": "build", "shown": "show", "left": "leave",
    "lost": "lose", "held": "hold", "told": "tell", "given": "give", "began": "begin", "begun": "begin", "died": "die",
}  # fmt: skip
_INTERCHANGEABLE = tuple(
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
"""Words that can replace each other in an explanation, although they are not synonyms."""


def _interchangeable_groups() -> dict[str, frozenset[str]]:
    groups: dict[str, frozenset[str]] = {}
    for group in _INTERCHANGEABLE:
        stems = frozenset(map(stem, group))
        for word in stems:
            groups[word] = groups.get(word, frozenset()) | stems
    return groups


_GROUPS = _interchangeable_groups()


@lru_cache(maxsize=16384)
def root(word: str) -> str:
    """The stem of a word, also of adverbs and irregular forms: "remotely" is "remote", "ran" is "run"."""
    lower = word.lower()
    lower = _IRREGULAR.get(lower, lower)
    return stem(lower[:-2]) if len(lower) > 5 and lower.endswith("ly") else stem(lower)


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """A term of a question: its root, and alternative spellings."""

    root: str
    spellings: frozenset[str] = frozenset()
    is_identifier: bool = False
    word: str = field(default="", compare=False)
    """As it is spelled in the question."""

    def match(self, roots: frozenset[str]) -> float:
        """How well the roots of a text match the term: between 0 and 1."""
        if self.root in roots or self.spellings & roots:
            return 1.0
        best = max((similarity(self.root, other) for other in roots), default=0.0)
        return best or (_INTERCHANGEABLE_SCORE if _GROUPS.get(self.root, frozenset()) & roots else 0.0)


def _terms(words: Sequence[str]) -> tuple[QueryTerm, ...]:
    """The terms of a question. A proper name of two words can be spelled as one: "Argo CD" and "ArgoCD"."""
    pairs: dict[str, frozenset[str]] = {}
    for one, other in pairwise(words):
        if _PROPER.match(one) and _PROPER.match(other):
            whole = frozenset({stem(one + other)})
            pairs[one], pairs[other] = pairs.get(one, frozenset()) | whole, pairs.get(other, frozenset()) | whole
    found = {
        term.root: term
        for word in words
        if (term := QueryTerm(root(word), pairs.get(word, frozenset()), "_" in word, word)).root
    }
    return tuple(found.values())


@lru_cache(maxsize=8192)
def roots_of(text: str) -> frozenset[str]:
    """The roots of all words of a text: identifiers whole and in parts, adjacent proper names also as one word."""
    tokens = _TOKEN.findall(lexical.joined(text))
    found = {root(part) for token in tokens for part in (token, *token.split("_"))}
    found |= {stem(one + other) for one, other in pairwise(tokens) if _PROPER.match(one) and _PROPER.match(other)}
    return frozenset(found)


@lru_cache(maxsize=8192)
def pairs_of(text: str) -> frozenset[tuple[str, str]]:
    """The roots of adjacent words, except pairs of stop words."""
    tokens = _TOKEN.findall(lexical.joined(text))
    return frozenset(
        (root(one), root(other))
        for one, other in pairwise(tokens)
        if not (lexical.is_stop_word(one) and lexical.is_stop_word(other))
    )


@dataclass(frozen=True, slots=True)
class WeightedQuestion:
    """A question as terms with their weights."""

    weights: Mapping[QueryTerm, float]
    pairs: frozenset[tuple[str, str]] = frozenset()
    """Roots of its adjacent words."""
    echo: re.Pattern[str] | None = None
    """Matches the question itself: a text that only quotes the question does not answer it."""

    def roots(self, text: str) -> frozenset[str]:
        return roots_of(self.echo.sub(" ", text) if self.echo else text)

    def wording(self, text: str) -> float:
        """The share of the question's adjacent word pairs in a text: between 0 and 1."""
        text = self.echo.sub(" ", text) if self.echo else text
        return len(self.pairs & pairs_of(text)) / len(self.pairs) if self.pairs else 0.0

    def is_exactly(self, text: str) -> bool:
        """Whether a text contains all terms of the question and no other words."""
        tokens = [token for token in _TOKEN.findall(lexical.joined(text)) if not lexical.is_stop_word(token)]
        named = [frozenset({root(token)}) for token in tokens]
        return self.share(frozenset().union(*named)) == 1.0 and all(map(self.share, named))

    def share(self, roots: frozenset[str]) -> float:
        """The weighted share of the question's terms among the roots of a text: between 0 and 1."""
        return self.share_of((roots, 1.0))

    def share_of(self, *texts: tuple[frozenset[str], float]) -> float:
        """`share` over several texts, each with a factor. Every term counts with its best match."""
        total = sum(self.weights.values())
        gained = sum(
            weight * max(factor * term.match(roots) for roots, factor in texts) for term, weight in self.weights.items()
        )
        return gained / total if total else 0.0


def question(text: str, words: Sequence[str], passages: Sequence[str], verb: str = "") -> WeightedQuestion:
    """The question in a text, with the words that its answer should contain. A word weighs more, the fewer passages
    contain it. The verb of a how-to question weighs less."""
    asked = WeightedQuestion({}, pairs_of(text), _echo(text))
    texts = [asked.roots(passage) for passage in passages]
    done = root(verb) if len(words) > 1 else ""
    found: dict[QueryTerm, float] = {}
    for term in _terms(words):
        having = sum(1 for roots in texts if term.root in roots or term.spellings & roots)
        rarity = math.log(1 + len(texts) / (having + 0.5))
        found[term] = rarity * (
            _IDENTIFIER_WEIGHT if term.is_identifier else _VERB_WEIGHT if term.root == done else 1.0
        )
    return replace(asked, weights=found)


def _echo(text: str) -> re.Pattern[str] | None:
    """A pattern for a whole question; None for plain search words."""
    spoken = _TOKEN.findall(text)
    if len(spoken) < 3 or spoken[0].lower() not in QUESTION_WORDS:
        return None
    return re.compile(r"\W+".join(map(re.escape, spoken)), re.I)
