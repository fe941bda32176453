"""Arguments for a tool, found in the words of a request.

Required arguments are looked for in every way there is; optional ones are given only when the request clearly says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ai_platform_engineering.offline_model import language, values
from ai_platform_engineering.offline_model.constraints import Constraint, Kind, constraints, without
from ai_platform_engineering.offline_model.language import (
    SYNONYM,
    best_similarity,
    identifier_words,
    similarity,
    stem,
)
from ai_platform_engineering.offline_model.requests import Request
from ai_platform_engineering.offline_model.schemas import Effect, Profile, Property
from ai_platform_engineering.offline_model.texts import text_candidates
from ai_platform_engineering.offline_model.vocabulary import CREATE_VERBS

OPPOSITES: Mapping[tuple[str, ...], str] = {
    ("private",): "public",
    ("public",): "private",
    ("enabled",): "disabled",
    ("open",): "closed",
}
_CREATE = frozenset(map(stem, CREATE_VERBS))
_NUMBER = re.compile(r"(?<![\w.\-/])#?(\d+(?:\.\d+)?)(?![\w\-/]|\.\d)|(?<=\w)#(\d+)\b")


_LOOSE: Mapping[Effect, frozenset[Kind]] = {
    "list": frozenset({"time", "exclusion", "order", "grouping", "comparison"}),
    "get": frozenset({"time", "exclusion", "order", "grouping"}),
    "change": frozenset({"time", "exclusion", "condition"}),
}
"""The constraints that no argument is looked for in."""


@dataclass(frozen=True, slots=True)
class Filled:
    """Arguments found, and the required ones that were not."""

    arguments: dict[str, Any] = field(default_factory=dict)
    missing: list[Property] = field(default_factory=list)


def fill(profile: Profile, request: Request, given: Mapping[str, Any] | None = None) -> Filled:
    """Arguments of a tool from the request; `given` are values known from elsewhere.

    Phrases that exclude, order or date things name none. In a text that is to be written down they are part of it.
    """
    found = constraints(request.text)
    loose = [item for item in found if item.kind in _LOOSE[profile.effect] and not is_stated(item, profile)]
    if loose and profile.effect == "change":
        texts = [value for value in _filled(profile, request, given).arguments.values() if isinstance(value, str)]
        loose = [item for item in loose if not any(item.phrase in text for text in texts)]
    return _filled(profile, replace(request, text=without(request.text, loose)) if loose else request, given)


def is_stated(constraint: Constraint, profile: Profile) -> bool:
    """Whether a phrase such as "not private" is what an argument says with yes or no."""
    return constraint.kind == "exclusion" and any(
        item.type == "boolean" and next(_stated(item, constraint.phrase), None) is not None
        for item in profile.properties
    )


def _filled(profile: Profile, request: Request, given: Mapping[str, Any] | None) -> Filled:
    filled = Filled(dict(given or {}))
    request = replace(request, stated=_stated_terms(profile, request.text))
    taken = {str(value) for value in filled.arguments.values()}
    for item in profile.properties:
        if item.name in filled.arguments:
            continue
        value = _value(item, request, profile, taken)
        if value is not None:
            filled.arguments[item.name] = value
            taken.add(str(value))
        elif item.required and not item.has_default:
            filled.missing.append(item)
    return filled


def _stated_terms(profile: Profile, text: str) -> frozenset[str]:
    """Stems of words that choose from an enumeration: in "tickets in progress" no thing is called progress."""
    spoken = language.stems(text)
    return frozenset(
        word
        for item in profile.properties
        for choice in _chosen(item, text, profile)
        for part in map(stem, identifier_words(str(choice)))
        for word in spoken
        if similarity(word, part) >= SYNONYM
    )


def _value(item: Property, request: Request, profile: Profile, taken: set[str]) -> Any:
    for candidate in _candidates(item, request, profile):
        value = values.coerce(item, candidate)
        if value is not None and (str(value) not in taken or isinstance(value, bool)):
            return value
    return None


def _candidates(item: Property, request: Request, profile: Profile) -> Iterator[Any]:
    if item.choices:
        yield from _chosen(item, request.text, profile)
        return
    match item.type:
        case "boolean":
            yield from _stated(item, request.text)
        case "integer" | "number":
            yield from _numbers(item, request.text)
        case "array" if item.items is not None:
            yield from _candidates(item.items, request, profile)
        case "object" if item.required:
            inner = {m.name: v for m in item.members if (v := _value(m, request, profile, set())) is not None}
            if all(m.name in inner for m in item.members if m.required):
                yield inner
        case "string":
            yield from text_candidates(item, request, profile)


def _chosen(item: Property, text: str, profile: Profile) -> Iterator[Any]:
    """Values of an enumeration that the text states, the longest first, else by a word that means the same.

    A filter takes one value: where several are stated, the results have to be chosen from.
    """
    phrases = [(choice, identifier_words(str(choice))) for choice in item.choices]
    stated = [pair for pair in sorted(phrases, key=lambda pair: -len(pair[1])) if language.states(text, pair[1])]
    if len(stated) > 1 and not item.required and item.type != "array" and profile.effect != "change":
        return
    # "Move it from To Do to Done" states where it comes from, too.
    for choice, _ in sorted(stated, key=lambda pair: not re.search(rf"\bto\s+{re.escape(str(pair[0]))}\b", text, re.I)):
        yield choice
    # "Created yesterday" states no condition, though an open issue is one that was opened.
    spoken = [
        word for word in language.stems(text) if best_similarity(word, profile.nouns) == 0 and word not in _CREATE
    ]
    for choice, phrase in phrases:
        if len(phrase) == 1 and any(similarity(stem(phrase[0]), word) == SYNONYM for word in spoken):
            yield choice


def _stated(item: Property, text: str) -> Iterator[bool]:
    phrase = tuple(word for word in identifier_words(item.name) if word not in {"is", "be"})
    stated = language.states(text, phrase)
    if stated is None and (opposite := OPPOSITES.get(phrase)) is not None:
        denied = language.states(text, (opposite,))
        stated = None if denied is None else not denied
    if stated is not None:
        yield stated


def _numbers(item: Property, text: str) -> Iterator[str]:
    labels = "|".join(re.escape(word) for word in identifier_words(item.name))
    if labels:
        for match in re.finditer(rf"\b(?:{labels})s?\b\s*(?:of|is|to|=|:|#)?\s*#?(\d+(?:\.\d+)?)\b", text, re.I):
            yield match[1]
    if {"limit", "max", "count", "top"} & set(item.words):
        for match in re.finditer(r"\b(?:first|top|last|latest|newest|into|limit)\s+(\d+)\b", text, re.I):
            yield match[1]
    if "prefix" in item.words:
        for match in re.finditer(r"(?<![\w.:])/(\d{1,3})\b", text):
            yield match[1]
    if "port" in item.words:
        for match in re.finditer(r"[\w\]]:(\d{1,5})\b", text):
            yield match[1]
    if item.required:
        yield from (match[1] or match[2] for match in _NUMBER.finditer(text))


def from_records(item: Property, records: Sequence[Mapping[str, Any]], request: Request, *, named: bool = False) -> Any:
    """A value for an argument out of things that were looked up: the one that fits the request best.

    A single thing fits anyway, unless it must have been `named`.
    """
    text = without(request.text, [item for item in constraints(request.text) if item.kind == "exclusion"])
    wanted = {term for term in language.terms(text) if term not in request.known}
    scored = [(len(wanted & _record_terms(record)), record) for record in records]
    best = max((score for score, _ in scored), default=0)
    fitting = [record for score, record in scored if score == best]
    if len(fitting) != 1 or (named and not best):
        return None
    return named_by(item, fitting[0])


def named_by(item: Property, record: Mapping[str, Any]) -> Any:
    """The value with which an argument names a thing that was looked up."""
    return values.coerce(item, _identity_for(item, record))


def _record_terms(record: Mapping[str, Any]) -> set[str]:
    return {term for value in record.values() if isinstance(value, str | int) for term in language.terms(str(value))}


def _identity_for(item: Property, record: Mapping[str, Any]) -> Any:
    fields = {tuple(stem(word) for word in identifier_words(key)): key for key in record}
    for wanted in (item.words, item.words[-1:], ("key",), ("name",), ("id",), ("number",)):
        if wanted in fields:
            return record[fields[wanted]]
    return None
