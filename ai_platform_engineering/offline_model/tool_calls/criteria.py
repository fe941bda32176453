"""Criteria: the words and constraints of a request that the arguments of its call do not cover.

`answers.filtering` applies them to the results; the answer names those that could not be applied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.constraints import Constraint, constraints
from ai_platform_engineering.offline_model.english.lexical import SYNONYM, identifier_words, is_about, similarity, stem
from ai_platform_engineering.offline_model.english.requests import RequestText
from ai_platform_engineering.offline_model.english.sentences import QUOTED
from ai_platform_engineering.offline_model.english.time_ranges import TimeRange, parse_time_range
from ai_platform_engineering.offline_model.english.vocabulary import (
    ASKING_VERBS,
    CHANGE_VERBS,
    CREATED,
    DEPLOYED,
    GENERAL_NOUNS,
    POLITE,
    PREPOSITIONS,
    QUESTION_WORDS,
    STATES,
    UPDATED,
    word_set,
)
from ai_platform_engineering.offline_model.tool_calls.arguments import OPPOSITES, is_stated
from ai_platform_engineering.offline_model.tool_calls.schemas import Property, ToolProfile

_SPOKEN = re.compile(r"[^\W_](?:[\w.\-/@]*\w)?(?:['’]s\b)?")
_EVERYTHING = word_set("all any everything")
_LIMIT_WORDS = word_set("limit max count top")
_SELF = word_set("me my mine i")
_OWNERSHIP = word_set("assigned assign owned opened created belonging by to")
_FILLERS = word_set("""
    happening happen going doing looking working wondering there exist exists existing related regarding concerning
    quick quickly brief briefly today's currently everyone somebody anybody someone anyone whole entire me us across
    having being called named titled right good morning whether if else actually really kind sort able possible thx
    sorted ordered rank ranked
""")
_EMPTY_WORDS = (
    ASKING_VERBS
    | GENERAL_NOUNS
    | QUESTION_WORDS
    | POLITE
    | PREPOSITIONS
    | ((CREATED | UPDATED | DEPLOYED) - STATES)
    | _FILLERS
)
_STARTS = word_set("since after start from begin earliest newer created_after updated_after")
_ENDS = word_set("until before end to latest older created_before updated_before")
_DATED = re.compile(r"\b(?:date|time|timestamp|iso|rfc)\b", re.I)


Weight = Literal["empty", "known", "synonym", "distinctive"]
"""The role of a word: no meaning by itself, in the tools' vocabulary, a synonym of that, or specific to the request."""


@dataclass(frozen=True, slots=True)
class RequestWord:
    """A word of a request with its span. Every word but an empty one can be a value in the results."""

    text: str
    start: int
    end: int
    weight: Weight


@dataclass(frozen=True, slots=True)
class Criteria:
    """The words and constraints of a request that no argument of its call covers."""

    text: str
    words: tuple[RequestWord, ...]
    constraints: tuple[Constraint, ...]
    now: datetime


def remaining_criteria(
    request: RequestText,
    profile: ToolProfile,
    arguments: Mapping[str, Any],
    now: datetime,
    lookups: Sequence[Mapping[str, Any]] = (),
) -> Criteria:
    """The criteria that neither the arguments of a call cover nor the lookups that found them."""
    left = tuple(item for item in constraints(request.text) if not _is_covered(item, profile, arguments))
    spans = [(item.start, item.end) for item in constraints(request.text)]
    spans += [match.span() for match in QUOTED.finditer(request.text)]
    covered = _covered_words(profile, arguments)
    covered |= {word for given in lookups for value in given.values() for word in identifier_words(str(value))}
    words = [
        RequestWord(match.group(), match.start(), match.end(), _weight(_phrase_of(match), request, profile))
        for match in _SPOKEN.finditer(request.text)
        if not any(start < match.end() and match.start() < end for start, end in spans)
    ]
    return Criteria(request.text, tuple(word for word in words if not _is_covered_word(word.text, covered)), left, now)


def _phrase_of(match: re.Match[str]) -> str:
    """A word, or the fixed phrase that contains it: "on call" for "call"."""
    spans = [(start, end) for start, end in lexical.phrase_spans(match.string) if start <= match.start() < end]
    return match.string[spans[0][0] : spans[0][1]] if spans else match.group()


def adjusted_arguments(
    request: RequestText, profile: ToolProfile, arguments: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """The arguments with time bounds that the tool accepts, and widened as far as filtering the results requires."""
    given = dict(arguments)
    if profile.effect == "change":
        return given
    for constraint in constraints(request.text):
        if constraint.kind == "time" and (wanted := parse_time_range(constraint.phrase, now)):
            given |= _time_bounds(profile, wanted, now, given)
    left = remaining_criteria(request, profile, given, now)
    for item in profile.properties:
        if item.name not in given and _needs_widening(item, left):
            given[item.name] = next(choice for choice in item.choices if str(choice).lower() in _EVERYTHING)
    if _filters_results(left):
        for item in profile.properties:
            if is_limit(item) and item.maximum is not None:
                given[item.name] = int(item.maximum)
    return given


def is_time_bound(item: Property) -> bool:
    """Whether an argument is a point in time that starts or ends a range."""
    names = {item.name.lower(), *identifier_words(item.name)}
    is_dated = item.format in {"date", "date-time"} or bool(_DATED.search(f"{item.name} {item.description}"))
    return item.type == "string" and not item.choices and is_dated and bool(names & (_STARTS | _ENDS))


def conditions(
    request: RequestText, profile: ToolProfile, arguments: Mapping[str, Any], now: datetime
) -> list[Constraint]:
    """The conditions and future times that a change should wait for."""
    return [
        item
        for item in constraints(request.text)
        if not _is_covered(item, profile, arguments)
        and (item.kind == "condition" or (item.kind == "time" and _is_future(item, now)))
    ]


def _is_future(item: Constraint, now: datetime) -> bool:
    wanted = parse_time_range(item.phrase, now)
    if wanted is None:
        return True
    return wanted.start is not None and wanted.start > now


def _is_covered(item: Constraint, profile: ToolProfile, arguments: Mapping[str, Any]) -> bool:
    if is_stated(item, profile) or any(isinstance(each, str) and item.phrase in each for each in arguments.values()):
        return True
    match item.kind:
        case "condition":
            return profile.effect != "change"
        case "grouping":
            return stem(item.words) in profile.nouns
        case "time":
            return any(is_time_bound(each) and each.name in arguments for each in profile.properties)
        case "count" | "comparison":
            limits = [each for each in profile.properties if each.type in {"integer", "number"}]
            return item.descending is None and any(arguments.get(each.name) == item.number for each in limits)
        case _:
            return False


def _covered_words(profile: ToolProfile, arguments: Mapping[str, Any]) -> set[str]:
    covered: set[str] = set()
    for item in profile.properties:
        if item.name not in arguments:
            continue
        value = arguments[item.name]
        if isinstance(value, bool):
            covered |= {*identifier_words(item.name), *filter(None, [OPPOSITES.get(identifier_words(item.name))])}
            continue
        if profile.effect == "change":
            covered |= {word for choice in item.choices for word in identifier_words(str(choice))}
        for each in value if isinstance(value, list) else [value]:
            text = str(each)
            covered |= {text.lower(), *lexical.words(text), *identifier_words(text)}
            if text == "me":
                covered |= _SELF
            covered |= _OWNERSHIP
    return covered


def _is_covered_word(word: str, covered: set[str]) -> bool:
    plain = word.lower().removesuffix("'s").removesuffix("’s")
    spoken = set(lexical.words(plain))
    if plain in covered or spoken <= covered:
        return True
    return len(spoken) == 1 and any(similarity(stem(plain), stem(other)) >= SYNONYM for other in covered)


def _weight(word: str, request: RequestText, profile: ToolProfile) -> Weight:
    lower = word.lower().replace("’", "'").removesuffix("'s")
    parts = [part for part in lexical.words(word.removesuffix("'s")) if not lexical.is_stop_word(part)]
    if not parts and word[:1].isupper() and len(word) > 1:
        # A capitalized stop word can be a value: the language Go.
        return "known"
    if not parts or lower in _EMPTY_WORDS or (profile.effect == "change" and lower in CHANGE_VERBS):
        return "empty"
    known = request.known | profile.vocabulary
    if lower in STATES or not all(is_about(stem(part), known) for part in parts):
        return "distinctive"
    return "known" if known.issuperset(map(stem, parts)) else "synonym"


def _needs_widening(item: Property, left: Criteria) -> bool:
    """Whether the default of an absent argument would exclude requested records."""
    if item.required or not any(str(choice).lower() in _EVERYTHING for choice in item.choices):
        return False
    for each in left.constraints:
        if each.kind == "time" or (each.kind == "exclusion" and _mentions(item, each.words)):
            return True
    return len([choice for choice in item.choices if lexical.states(left.text, identifier_words(str(choice)))]) > 1


def _mentions(item: Property, words: str) -> bool:
    spoken = lexical.words(words)
    return any(
        lexical.states(words, identifier_words(str(choice))) is not None
        or any(similarity(stem(word), stem(str(choice))) >= SYNONYM for word in spoken)
        for choice in item.choices
    )


def _filters_results(left: Criteria) -> bool:
    """Whether results will be filtered or sorted, which requires all of them."""
    kinds = {"time", "exclusion", "comparison", "order"}
    return any(item.kind in kinds or item.descending is not None for item in left.constraints) or any(
        word.weight in {"synonym", "distinctive"} for word in left.words
    )


def is_limit(item: Property) -> bool:
    """Whether an argument limits the number of results."""
    return item.type == "integer" and not item.required and bool(_LIMIT_WORDS & set(item.words))


def _time_bounds(profile: ToolProfile, wanted: TimeRange, now: datetime, given: Mapping[str, Any]) -> dict[str, str]:
    """The arguments for the bounds of a time range; empty unless the tool accepts every bound that matters."""
    instants = [item for item in profile.properties if is_time_bound(item) and item.name not in given]
    first = next((item for item in instants if {item.name.lower(), *identifier_words(item.name)} & _STARTS), None)
    last = next((item for item in instants if {item.name.lower(), *identifier_words(item.name)} & _ENDS), None)
    needs_end = wanted.end is not None and wanted.end < now
    if (wanted.start is not None and first is None) or (needs_end and last is None):
        return {}
    found = {}
    if first is not None and wanted.start is not None:
        found[first.name] = _formatted_time(first, wanted.start)
    if last is not None and wanted.end is not None and needs_end:
        found[last.name] = _formatted_time(last, wanted.end)
    return found


def _formatted_time(item: Property, when: datetime) -> str:
    is_day = item.format == "date" or re.search(r"YYYY-MM-DD(?!T)", item.description)
    return f"{when:%Y-%m-%d}" if is_day else f"{when:%Y-%m-%dT%H:%M:%SZ}"
