"""Which agents a text is for: by their names, their keywords and their descriptions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from ai_platform_engineering.offline_model import language
from ai_platform_engineering.offline_model.language import stem
from ai_platform_engineering.offline_model.requests import is_common
from ai_platform_engineering.offline_model.tools import Agent
from ai_platform_engineering.offline_model.values import shaped
from ai_platform_engineering.offline_model.vocabulary import (
    CREATE_VERBS,
    READ_VERBS,
    SHAPE_ASSOCIATIONS,
)

_KEYWORD_WEIGHT, _DESCRIPTION_WEIGHT = 4.0, 1.5
_RELATED = 0.4
_PLACE = 0.6
"""Weight of a word after a preposition: it tells where, more than what."""
_THRESHOLD = 1.0
_CLOSE = 0.75
"""Agents that score at least this share of the best one are asked too."""

_COMPOUND = re.compile(r"\b\w+(?:[-/_.#]\w+)+")
_PLAIN = frozenset(stem(word) for word in READ_VERBS | CREATE_VERBS | {"update", "delete", "change", "manage"})


@lru_cache(maxsize=512)
def fitting(text: str, agents: tuple[Agent, ...]) -> tuple[Agent, ...]:
    """The agents that a text is clearly for, in the order in which it mentions them."""
    shapes = _shape_terms(text)
    text = _without_things(text, agents)
    if named := named_agents(text, agents):
        return named
    scores = [(_score(text, shapes, agent), agent) for agent in agents]
    best = max((score for score, _ in scores), default=0.0)
    return tuple(agent for score, agent in scores if score >= max(best * _CLOSE, _THRESHOLD))


def named_agents(text: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Agents called by their name, in the order of the text."""
    spoken = language.words(text)
    singles = [stem(word) for word in spoken]
    doubles = [stem(one + other) for one, other in pairwise(spoken)]
    found: list[tuple[int, Agent]] = []
    for agent in agents:
        names = _names(agent)
        places = [
            place
            for place, (word, pair) in enumerate(zip(singles, [*doubles, ""], strict=False))
            if {word, pair} & names
        ]
        if places:
            found.append((places[0], agent))
    return tuple(agent for _, agent in sorted(found, key=lambda entry: entry[0]))


def vocabulary(agents: Sequence[Agent]) -> frozenset[str]:
    """Stems that describe agents, and so name no particular thing."""
    return _vocabulary(tuple(agents))


@lru_cache(maxsize=64)
def _vocabulary(agents: tuple[Agent, ...]) -> frozenset[str]:
    return frozenset().union(
        *(_names(agent) | _keywords(agent) | language.description_terms(agent.description) for agent in agents)
    )


@lru_cache(maxsize=512)
def _names(agent: Agent) -> frozenset[str]:
    return frozenset({stem(re.sub(r"[_-]", "", agent.name)), stem(agent.name)})


@lru_cache(maxsize=512)
def _keywords(agent: Agent) -> frozenset[str]:
    """Keywords of one word. (The terms of longer ones would match far too much.)"""
    return frozenset(stem(parts[0]) for keyword in agent.keywords if len(parts := language.words(keyword)) == 1)


@lru_cache(maxsize=512)
def _key_phrases(agent: Agent) -> frozenset[tuple[str, ...]]:
    return frozenset(parts for keyword in agent.keywords if len(parts := language.stems(keyword)) > 1)


def _without_things(text: str, agents: tuple[Agent, ...]) -> str:
    """The text without compound names of things: `acme/gitops#12` says nothing about gitops."""
    own = frozenset().union(*map(_names, agents))
    known = vocabulary(agents)

    def kept(match: re.Match[str]) -> str:
        token = match.group()
        is_agent = stem(re.sub(r"[_-]", "", token)) in own
        return token if is_agent or is_common(token, known) else " "

    return _COMPOUND.sub(kept, language.joined(text))


def _score(text: str, shapes: frozenset[str], agent: Agent) -> float:
    places = language.places(text)
    score = sum(
        _term_score(term, agent) * (_PLACE if term in places else 1.0)
        for term in language.terms(text)
        if term not in _PLAIN
    )
    score += _KEYWORD_WEIGHT * sum(language.contains_phrase(text, phrase) for phrase in _key_phrases(agent))
    return score + max((_term_score(term, agent) for term in shapes), default=0.0)


@lru_cache(maxsize=512)
def _shape_terms(text: str) -> frozenset[str]:
    """What the shapes of the text's tokens bring to mind."""
    return frozenset(
        stem(term)
        for shape, associated in SHAPE_ASSOCIATIONS.items()
        if next(shaped(shape, text), None) is not None
        for term in associated
    )


@lru_cache(maxsize=16384)
def _term_score(term: str, agent: Agent) -> float:
    keywords, description = _keywords(agent), language.description_terms(agent.description)
    if term in keywords:
        return _KEYWORD_WEIGHT
    if term in description:
        return _DESCRIPTION_WEIGHT
    related = language.associated(term)
    if related & keywords or language.is_about(term, keywords):
        return _KEYWORD_WEIGHT * _RELATED
    if related & description:
        return _DESCRIPTION_WEIGHT
    return _DESCRIPTION_WEIGHT * _RELATED if language.is_about(term, description) else 0.0
