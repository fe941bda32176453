"""Demands: what a request demands of a call that its arguments do not say.

A demand is met by the results (`sifting`), or the answer names it as not applied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ai_platform_engineering.offline_model import language
from ai_platform_engineering.offline_model.arguments import OPPOSITES, is_stated
from ai_platform_engineering.offline_model.constraints import Constraint, constraints
from ai_platform_engineering.offline_model.language import SYNONYM, identifier_words, is_about, similarity, stem
from ai_platform_engineering.offline_model.requests import Request
from ai_platform_engineering.offline_model.schemas import Profile, Property
from ai_platform_engineering.offline_model.sentences import QUOTED
from ai_platform_engineering.offline_model.timeframes import Stretch, stretch
from ai_platform_engineering.offline_model.vocabulary import (
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
_EMPTY = (
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


Weight = Literal["empty", "known", "synonym", "telling"]
"""What a word may mean: nothing by itself, what the tools are about, the same as that, or something else."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A word of a request, and where it stands. Results may have any but an empty one as a value."""

    text: str
    start: int
    end: int
    weight: Weight


@dataclass(frozen=True, slots=True)
class Demand:
    """What is left of a request once the arguments of its call have taken their words."""

    text: str
    words: tuple[Spoken, ...]
    constraints: tuple[Constraint, ...]
    now: datetime


def demand(
    request: Request,
    profile: Profile,
    arguments: Mapping[str, Any],
    now: datetime,
    lookups: Sequence[Mapping[str, Any]] = (),
) -> Demand:
    """What the arguments of a call leave of its request, and those of calls that looked up what it names."""
    left = tuple(item for item in constraints(request.text) if not _is_taken(item, profile, arguments))
    spans = [(item.start, item.end) for item in constraints(request.text)]
    spans += [match.span() for match in QUOTED.finditer(request.text)]
    taken = _taken_words(profile, arguments)
    taken |= {word for given in lookups for value in given.values() for word in identifier_words(str(value))}
    words = [
        Spoken(match.group(), match.start(), match.end(), _weight(_whole(match), request, profile))
        for match in _SPOKEN.finditer(request.text)
        if not any(start < match.end() and match.start() < end for start, end in spans)
    ]
    return Demand(request.text, tuple(word for word in words if not _takes(word.text, taken)), left, now)


def _whole(match: re.Match[str]) -> str:
    """A word, or the words it belongs together with: "call" in "on call"."""
    spans = [(start, end) for start, end in language.phrase_spans(match.string) if start <= match.start() < end]
    return match.string[spans[0][0] : spans[0][1]] if spans else match.group()


def adjusted(request: Request, profile: Profile, arguments: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The arguments, with times that the tool can take, and as wide as it takes to meet the rest with the results."""
    given = dict(arguments)
    if profile.effect == "change":
        return given
    for constraint in constraints(request.text):
        if constraint.kind == "time" and (wanted := stretch(constraint.phrase, now)):
            given |= _instants(profile, wanted, now, given)
    left = demand(request, profile, given, now)
    for item in profile.properties:
        if item.name not in given and _is_to_be_widened(item, left):
            given[item.name] = next(choice for choice in item.choices if str(choice).lower() in _EVERYTHING)
    if _narrows(left):
        for item in profile.properties:
            if is_limit(item) and item.maximum is not None:
                given[item.name] = int(item.maximum)
    return given


def is_instant(item: Property) -> bool:
    """Whether an argument is a point in time, from or up to which things are wanted."""
    names = {item.name.lower(), *identifier_words(item.name)}
    is_dated = item.format in {"date", "date-time"} or bool(_DATED.search(f"{item.name} {item.description}"))
    return item.type == "string" and not item.choices and is_dated and bool(names & (_STARTS | _ENDS))


def conditions(request: Request, profile: Profile, arguments: Mapping[str, Any], now: datetime) -> list[Constraint]:
    """What a change is to wait for: a condition, or a time that has not come."""
    return [
        item
        for item in constraints(request.text)
        if not _is_taken(item, profile, arguments)
        and (item.kind == "condition" or (item.kind == "time" and _lies_ahead(item, now)))
    ]


def _lies_ahead(item: Constraint, now: datetime) -> bool:
    wanted = stretch(item.phrase, now)
    if wanted is None:
        return True
    return wanted.start is not None and wanted.start > now


def _is_taken(item: Constraint, profile: Profile, arguments: Mapping[str, Any]) -> bool:
    if is_stated(item, profile) or any(isinstance(each, str) and item.phrase in each for each in arguments.values()):
        return True
    match item.kind:
        case "condition":
            return profile.effect != "change"
        case "grouping":
            return stem(item.words) in profile.nouns
        case "time":
            return any(is_instant(each) and each.name in arguments for each in profile.properties)
        case "count" | "comparison":
            limits = [each for each in profile.properties if each.type in {"integer", "number"}]
            return item.descending is None and any(arguments.get(each.name) == item.number for each in limits)
        case _:
            return False


def _taken_words(profile: Profile, arguments: Mapping[str, Any]) -> set[str]:
    taken: set[str] = set()
    for item in profile.properties:
        if item.name not in arguments:
            continue
        value = arguments[item.name]
        if isinstance(value, bool):
            taken |= {*identifier_words(item.name), *filter(None, [OPPOSITES.get(identifier_words(item.name))])}
            continue
        if profile.effect == "change":
            taken |= {word for choice in item.choices for word in identifier_words(str(choice))}
        for each in value if isinstance(value, list) else [value]:
            text = str(each)
            taken |= {text.lower(), *language.words(text), *identifier_words(text)}
            if text == "me":
                taken |= _SELF
            taken |= _OWNERSHIP
    return taken


def _takes(word: str, taken: set[str]) -> bool:
    plain = word.lower().removesuffix("'s").removesuffix("’s")
    spoken = set(language.words(plain))
    if plain in taken or spoken <= taken:
        return True
    return len(spoken) == 1 and any(similarity(stem(plain), stem(other)) >= SYNONYM for other in taken)


def _weight(word: str, request: Request, profile: Profile) -> Weight:
    lower = word.lower().replace("’", "'").removesuffix("'s")
    parts = [part for part in language.words(word.removesuffix("'s")) if not language.is_stop_word(part)]
    if not parts and word[:1].isupper() and len(word) > 1:
        # A value may be spelled like a word that says nothing: the language Go.
        return "known"
    if not parts or lower in _EMPTY or (profile.effect == "change" and lower in CHANGE_VERBS):
        return "empty"
    known = request.known | profile.vocabulary
    if lower in STATES or not all(is_about(stem(part), known) for part in parts):
        return "telling"
    return "known" if known.issuperset(map(stem, parts)) else "synonym"


def _is_to_be_widened(item: Property, left: Demand) -> bool:
    """Whether an argument that was not given would leave out things that are asked for."""
    if item.required or not any(str(choice).lower() in _EVERYTHING for choice in item.choices):
        return False
    for each in left.constraints:
        if each.kind == "time" or (each.kind == "exclusion" and _mentions(item, each.words)):
            return True
    return len([choice for choice in item.choices if language.states(left.text, identifier_words(str(choice)))]) > 1


def _mentions(item: Property, words: str) -> bool:
    spoken = language.words(words)
    return any(
        language.states(words, identifier_words(str(choice))) is not None
        or any(similarity(stem(word), stem(str(choice))) >= SYNONYM for word in spoken)
        for choice in item.choices
    )


def _narrows(left: Demand) -> bool:
    """Whether results may have to be left out, or put into another order, so that all of them are needed."""
    kinds = {"time", "exclusion", "comparison", "order"}
    return any(item.kind in kinds or item.descending is not None for item in left.constraints) or any(
        word.weight in {"synonym", "telling"} for word in left.words
    )


def is_limit(item: Property) -> bool:
    """Whether an argument says how many results are wanted at most."""
    return item.type == "integer" and not item.required and bool(_LIMIT_WORDS & set(item.words))


def _instants(profile: Profile, wanted: Stretch, now: datetime, given: Mapping[str, Any]) -> dict[str, str]:
    """The arguments for the edges of a stretch of time; none unless the tool can take all that matter."""
    instants = [item for item in profile.properties if is_instant(item) and item.name not in given]
    first = next((item for item in instants if {item.name.lower(), *identifier_words(item.name)} & _STARTS), None)
    last = next((item for item in instants if {item.name.lower(), *identifier_words(item.name)} & _ENDS), None)
    needs_end = wanted.end is not None and wanted.end < now
    if (wanted.start is not None and first is None) or (needs_end and last is None):
        return {}
    found = {}
    if first is not None and wanted.start is not None:
        found[first.name] = _written(first, wanted.start)
    if last is not None and wanted.end is not None and needs_end:
        found[last.name] = _written(last, wanted.end)
    return found


def _written(item: Property, when: datetime) -> str:
    is_day = item.format == "date" or re.search(r"YYYY-MM-DD(?!T)", item.description)
    return f"{when:%Y-%m-%d}" if is_day else f"{when:%Y-%m-%dT%H:%M:%SZ}"
