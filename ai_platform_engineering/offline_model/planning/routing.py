"""Routing: the agents that fit a text, by name, keywords and description."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.lexical import stem
from ai_platform_engineering.offline_model.english.requests import is_common
from ai_platform_engineering.offline_model.english.vocabulary import (
    CREATE_VERBS,
    READ_VERBS,
    SHAPE_ASSOCIATIONS,
)
from ai_platform_engineering.offline_model.messages.tools import Agent
from ai_platform_engineering.offline_model.tool_calls.values import shaped

_KEYWORD_WEIGHT, _DESCRIPTION_WEIGHT = 4.0, 1.5
_RELATED_FACTOR = 0.4
_LOCATION_WEIGHT = 0.6
"""Weight of a word after a preposition: it usually names a location, not the subject."""
_THRESHOLD = 1.0
_MIN_SCORE_RATIO = 0.75
"""Agents with at least this share of the best score are chosen too."""

_COMPOUND = re.compile(r"\b\w+(?:[-/_.#]\w+)+")
_COMMON_VERBS = frozenset(stem(word) for word in READ_VERBS | CREATE_VERBS | {"update", "delete", "change", "manage"})


@lru_cache(maxsize=512)
def fitting(text: str, agents: tuple[Agent, ...]) -> tuple[Agent, ...]:
    """The agents that a text names, in that order; else those that score high enough."""
    shapes = _shape_terms(text)
    text = _without_things(text, agents)
    if named := named_agents(text, agents):
        return named
    scores = [(_score(text, shapes, agent), agent) for agent in agents]
    best = max((score for score, _ in scores), default=0.0)
    return tuple(agent for score, agent in scores if score >= max(best * _MIN_SCORE_RATIO, _THRESHOLD))


def named_agents(text: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Agents that the text names, in the order of the text."""
    spoken = lexical.words(text)
    singles = [stem(word) for word in spoken]
    doubles = [stem(one + other) for one, other in pairwise(spoken)]
    found: list[tuple[int, Agent]] = []
    for agent in agents:
        names = _names(agent)
        positions = [
            position
            for position, (word, pair) in enumerate(zip(singles, [*doubles, ""], strict=False))
            if {word, pair} & names
        ]
        if positions:
            found.append((positions[0], agent))
    return tuple(agent for _, agent in sorted(found, key=lambda entry: entry[0]))


def vocabulary(agents: Sequence[Agent]) -> frozenset[str]:
    """Stems that describe agents and therefore are not names of things."""
    return _vocabulary(tuple(agents))


@lru_cache(maxsize=64)
def _vocabulary(agents: tuple[Agent, ...]) -> frozenset[str]:
    return frozenset().union(
        *(_names(agent) | _keywords(agent) | lexical.description_terms(agent.description) for agent in agents)
    )


@lru_cache(maxsize=512)
def _names(agent: Agent) -> frozenset[str]:
    return frozenset({stem(re.sub(r"[_-]", "", agent.name)), stem(agent.name)})


@lru_cache(maxsize=512)
def _keywords(agent: Agent) -> frozenset[str]:
    """Keywords of one word. Single words of longer ones would match too much; see `_key_phrases`."""
    return frozenset(stem(parts[0]) for keyword in agent.keywords if len(parts := lexical.words(keyword)) == 1)


@lru_cache(maxsize=512)
def _key_phrases(agent: Agent) -> frozenset[tuple[str, ...]]:
    return frozenset(parts for keyword in agent.keywords if len(parts := lexical.stems(keyword)) > 1)


def _without_things(text: str, agents: tuple[Agent, ...]) -> str:
    """The text without compound names of things: `acme/gitops#12` is not about gitops."""
    own = frozenset().union(*map(_names, agents))
    known = vocabulary(agents)

    def replacement(match: re.Match[str]) -> str:
        token = match.group()
        is_agent = stem(re.sub(r"[_-]", "", token)) in own
        return token if is_agent or is_common(token, known) else " "

    return _COMPOUND.sub(replacement, lexical.joined(text))


def _score(text: str, shapes: frozenset[str], agent: Agent) -> float:
    location_terms = lexical.location_terms(text)
    score = sum(
        _term_score(term, agent) * (_LOCATION_WEIGHT if term in location_terms else 1.0)
        for term in lexical.terms(text)
        if term not in _COMMON_VERBS
    )
    score += _KEYWORD_WEIGHT * sum(lexical.contains_phrase(text, phrase) for phrase in _key_phrases(agent))
    return score + max((_term_score(term, agent) for term in shapes), default=0.0)


@lru_cache(maxsize=512)
def _shape_terms(text: str) -> frozenset[str]:
    """Stems related to the shapes of tokens in the text, for example "network" for an IP address."""
    return frozenset(
        stem(term)
        for shape, associated in SHAPE_ASSOCIATIONS.items()
        if next(shaped(shape, text), None) is not None
        for term in associated
    )


@lru_cache(maxsize=16384)
def _term_score(term: str, agent: Agent) -> float:
    keywords, description = _keywords(agent), lexical.description_terms(agent.description)
    if term in keywords:
        return _KEYWORD_WEIGHT
    if term in description:
        return _DESCRIPTION_WEIGHT
    related = lexical.associated(term)
    if related & keywords or lexical.is_about(term, keywords):
        return _KEYWORD_WEIGHT * _RELATED_FACTOR
    if related & description:
        return _DESCRIPTION_WEIGHT
    return _DESCRIPTION_WEIGHT * _RELATED_FACTOR if lexical.is_about(term, description) else 0.0
