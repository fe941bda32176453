"""Tool selection: score each tool by the words and the arguments of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ai_platform_engineering.offline_model.english.lexical import (
    SYNONYM,
    associated,
    best_similarity,
    is_plural,
    location_terms,
    similarity,
    stem,
    terms,
    words,
)
from ai_platform_engineering.offline_model.english.requests import RequestText
from ai_platform_engineering.offline_model.english.sentences import leading_verb, requested_changes
from ai_platform_engineering.offline_model.english.vocabulary import READ_VERBS, word_set
from ai_platform_engineering.offline_model.tool_calls.arguments import FilledArguments, fill
from ai_platform_engineering.offline_model.tool_calls.schemas import Toolbox, ToolProfile

_MAX_CANDIDATES = 8
_THRESHOLD = 1.5
_LOCATION_WEIGHT = 0.4
_SCOPE = re.compile(r"\b(?:in|of|from|for|on|within)\s+(?:the\s+)?[\w-]+\s+(?P<kind>[a-z]+)\b", re.I)
_PLAIN_VERBS = frozenset(stem(verb) for verb in READ_VERBS)
_ASKS_FOR_MANY = word_set("list which all every any many who")


@lru_cache(maxsize=256)
def choose(request: RequestText, box: Toolbox) -> tuple[ToolProfile, FilledArguments] | None:
    """The tool that fits a request best, with the arguments found for it; None below the threshold.

    A tool with the effect "change" is a candidate only if the request asks for that change.
    """
    changes = _supported_changes(requested_changes(request.text), box.profiles)
    if changes is None:
        return None
    locations = location_terms(request.text) | _scopes(request.text, box.profiles)
    wanted = {
        term: _LOCATION_WEIGHT if term in locations else 1.0 for term in terms(request.text) if term not in _PLAIN_VERBS
    }
    candidates = [item for item in box.profiles if item.effect != "change" or _makes(item, changes)]
    scored = [(_word_score(item, wanted, changes, box), item) for item in candidates]
    scored.sort(key=lambda entry: -entry[0])
    best: tuple[float, ToolProfile, FilledArguments] | None = None
    for score, item in scored[:_MAX_CANDIDATES]:
        filled = fill(item, request)
        total = score + _argument_score(item, filled, request)
        if best is None or total > best[0]:
            best = (total, item, filled)
    return best[1:] if best is not None and best[0] >= _THRESHOLD else None


def overview(request: RequestText, profiles: Sequence[ToolProfile]) -> ToolProfile | None:
    """For a request that only names the agent's own topic: the first listing without required arguments."""
    wanted = set(terms(request.text)) - _PLAIN_VERBS
    if requested_changes(request.text) or not wanted <= request.known:
        return None
    return next((item for item in profiles if item.effect == "list" and not item.required), None)


def _scopes(text: str, profiles: Sequence[ToolProfile]) -> frozenset[str]:
    """Stems of words for a container: "apps in the shop project" asks for apps, not for projects."""
    optional = {word for item in profiles for each in item.properties if not each.required for word in each.words}
    return frozenset(kind for match in _SCOPE.finditer(text) if (kind := stem(match["kind"])) in optional)


def _supported_changes(asked: Sequence[str], profiles: Sequence[ToolProfile]) -> tuple[str, ...] | None:
    """The requested changes that some tool makes; None if a change is requested that no tool makes.

    A verb like "resolve" is a change for one agent and a read for another.
    """
    supported = tuple(
        change for change in asked if any(item.effect == "change" and _makes(item, (change,)) for item in profiles)
    )
    read = [
        change for change in asked if any(best_similarity(change, (item.verb or "", *item.nouns)) for item in profiles)
    ]
    return None if asked and not supported and not read else supported


def _makes(item: ToolProfile, changes: Sequence[str]) -> bool:
    return any(similarity(change, word) >= SYNONYM for change in changes for word in (item.verb or "", *item.nouns))


def _word_score(item: ToolProfile, wanted: Mapping[str, float], changes: Sequence[str], box: Toolbox) -> float:
    score = 0.0
    matched: set[str] = set()
    for term, weight in wanted.items():
        likeness, noun = max(((similarity(term, noun), noun) for noun in item.nouns), default=(0.0, ""))
        if likeness > 0:
            score += 4 * likeness * weight * box.rarity[noun]
            matched.add(noun)
        elif of_kind := box.kinds.get(term, frozenset()).intersection(item.nouns):
            score += 4 * SYNONYM * weight
            matched |= of_kind
        elif related := associated(term).intersection(item.nouns):
            score += 1.6
            matched |= related
        elif term in item.description:
            score += 1.0
        elif (
            best_similarity(term, item.description) > 0
            or associated(term) & item.description
            or any(term in each.words for each in item.properties)
        ):
            score += 0.6
        if item.effect != "change" and item.verb and similarity(term, item.verb) > 0:
            score += 2.0
    score -= sum(1.0 for noun in item.nouns if noun not in matched)
    if item.effect == "change":
        spoken = (item.verb or "", *item.nouns)
        return score + 5 * max((similarity(change, word) for change in changes for word in spoken), default=0.0)
    return score - 4 if changes else score


def _argument_score(item: ToolProfile, filled: FilledArguments, request: RequestText) -> float:
    """The score of the arguments: which required ones are missing, which others the request gives."""
    # One form can ask for many arguments, so more than two missing ones cost no more.
    score = -2.0 * (min(len(filled.missing), 2) if request.may_ask else len(filled.missing))
    score += 1.5 * sum(1 for each in item.properties if each.choices and each.name in filled.arguments)
    if item.effect == "change":
        return score
    if item.verb and stem(leading_verb(request.text) or "") == item.verb:
        score += 1.0
    asks_for_many = _asks_for_many(item, request.text)
    if item.effect == "list":
        score += sum(1.0 for each in item.properties if not each.choices and each.name in filled.arguments)
        return score + (1.5 if asks_for_many else 0.5)
    if not item.required:
        return score
    named = [each for each in item.required if each.name in filled.arguments]
    if any(each.example and re.search(r"\d", each.example) for each in named):
        return score + 4.0
    return score + ((0.5 if asks_for_many else 2.5) if named else -1.0)


def _asks_for_many(item: ToolProfile, text: str) -> bool:
    spoken = words(text)
    return bool(_ASKS_FOR_MANY.intersection(spoken)) or any(
        is_plural(word) and best_similarity(stem(word), item.nouns) > 0 for word in spoken
    )
