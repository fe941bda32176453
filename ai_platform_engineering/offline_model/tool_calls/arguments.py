"""Arguments of a tool call, found in the words of a request.

Required arguments use every heuristic; optional ones are set only if the request clearly states them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.constraints import (
    Constraint,
    ConstraintKind,
    constraints,
    without_constraints,
)
from ai_platform_engineering.offline_model.english.lexical import (
    SYNONYM,
    best_similarity,
    identifier_words,
    similarity,
    stem,
)
from ai_platform_engineering.offline_model.english.requests import RequestText
from ai_platform_engineering.offline_model.english.vocabulary import CREATE_VERBS
from ai_platform_engineering.offline_model.tool_calls import values
from ai_platform_engineering.offline_model.tool_calls.schemas import Effect, Property, ToolProfile
from ai_platform_engineering.offline_model.tool_calls.text_values import text_candidates

OPPOSITES: Mapping[tuple[str, ...], str] = {
    ("private",): "public",
    ("public",): "private",
    ("enabled",): "disabled",
    ("open",): "closed",
}
_CREATE = frozenset(map(stem, CREATE_VERBS))
_NUMBER = re.compile(r"(?<![\w.\-/])#?(\d+(?:\.\d+)?)(?![\w\-/]|\.\d)|(?<=\w)#(\d+)\b")


_WITHOUT_ARGUMENTS: Mapping[Effect, frozenset[ConstraintKind]] = {
    "list": frozenset({"time", "exclusion", "order", "grouping", "comparison"}),
    "get": frozenset({"time", "exclusion", "order", "grouping"}),
    "change": frozenset({"time", "exclusion", "condition"}),
}
"""By effect: constraints whose phrases contain no arguments."""


@dataclass(frozen=True, slots=True)
class FilledArguments:
    """The arguments that were found, and the required ones that were not."""

    arguments: dict[str, Any] = field(default_factory=dict)
    missing: list[Property] = field(default_factory=list)


def fill(profile: ToolProfile, request: RequestText, given: Mapping[str, Any] | None = None) -> FilledArguments:
    """Arguments of a tool from the request; `given` are values from other sources.

    Phrases that exclude, sort or date things contain no arguments, unless they are part of dictated text.
    """
    found = constraints(request.text)
    ignored = [
        item for item in found if item.kind in _WITHOUT_ARGUMENTS[profile.effect] and not is_stated(item, profile)
    ]
    if ignored and profile.effect == "change":
        texts = [value for value in _filled(profile, request, given).arguments.values() if isinstance(value, str)]
        ignored = [item for item in ignored if not any(item.phrase in text for text in texts)]
    return _filled(
        profile, replace(request, text=without_constraints(request.text, ignored)) if ignored else request, given
    )


def is_stated(constraint: Constraint, profile: ToolProfile) -> bool:
    """Whether an exclusion like "not private" is the value of a boolean argument."""
    return constraint.kind == "exclusion" and any(
        item.type == "boolean" and next(_boolean_values(item, constraint.phrase), None) is not None
        for item in profile.properties
    )


def _filled(profile: ToolProfile, request: RequestText, given: Mapping[str, Any] | None) -> FilledArguments:
    filled = FilledArguments(dict(given or {}))
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


def _stated_terms(profile: ToolProfile, text: str) -> frozenset[str]:
    """Stems of words that select a value of an enumeration: in "tickets in progress", "progress" is no name."""
    spoken = lexical.stems(text)
    return frozenset(
        word
        for item in profile.properties
        for choice in _enumeration_values(item, text, profile)
        for part in map(stem, identifier_words(str(choice)))
        for word in spoken
        if similarity(word, part) >= SYNONYM
    )


def _value(item: Property, request: RequestText, profile: ToolProfile, taken: set[str]) -> Any:
    for candidate in _candidates(item, request, profile):
        value = values.coerce(item, candidate)
        if value is not None and (str(value) not in taken or isinstance(value, bool)):
            return value
    return None


def _candidates(item: Property, request: RequestText, profile: ToolProfile) -> Iterator[Any]:
    if item.choices:
        yield from _enumeration_values(item, request.text, profile)
        return
    match item.type:
        case "boolean":
            yield from _boolean_values(item, request.text)
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


def _enumeration_values(item: Property, text: str, profile: ToolProfile) -> Iterator[Any]:
    """Values of an enumeration that the text states, the longest first, then values with a synonym in the text.

    A filter takes one value: if several are stated, none is yielded and the results are filtered instead.
    """
    phrases = [(choice, identifier_words(str(choice))) for choice in item.choices]
    stated = [pair for pair in sorted(phrases, key=lambda pair: -len(pair[1])) if lexical.states(text, pair[1])]
    if len(stated) > 1 and not item.required and item.type != "array" and profile.effect != "change":
        return
    # "Move it from To Do to Done" states the source as well; the value after "to" is the target.
    for choice, _ in sorted(stated, key=lambda pair: not re.search(rf"\bto\s+{re.escape(str(pair[0]))}\b", text, re.I)):
        yield choice
    # "Created yesterday" does not mean the state "open", although "open" and "create" are synonyms as verbs.
    spoken = [word for word in lexical.stems(text) if best_similarity(word, profile.nouns) == 0 and word not in _CREATE]
    for choice, phrase in phrases:
        if len(phrase) == 1 and any(similarity(stem(phrase[0]), word) == SYNONYM for word in spoken):
            yield choice


def _boolean_values(item: Property, text: str) -> Iterator[bool]:
    phrase = tuple(word for word in identifier_words(item.name) if word not in {"is", "be"})
    stated = lexical.states(text, phrase)
    if stated is None and (opposite := OPPOSITES.get(phrase)) is not None:
        denied = lexical.states(text, (opposite,))
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


def from_records(
    item: Property, records: Sequence[Mapping[str, Any]], request: RequestText, *, named: bool = False
) -> Any:
    """The value of an argument from looked-up records: that of the record which fits the request best.

    A single record always fits, unless `named` requires that the request names it.
    """
    text = without_constraints(request.text, [item for item in constraints(request.text) if item.kind == "exclusion"])
    wanted = {term for term in lexical.terms(text) if term not in request.known}
    scored = [(len(wanted & _record_terms(record)), record) for record in records]
    best = max((score for score, _ in scored), default=0)
    fitting = [record for score, record in scored if score == best]
    if len(fitting) != 1 or (named and not best):
        return None
    return named_by(item, fitting[0])


def named_by(item: Property, record: Mapping[str, Any]) -> Any:
    """The value of an argument that refers to a record."""
    return values.coerce(item, _identity_for(item, record))


def _record_terms(record: Mapping[str, Any]) -> set[str]:
    return {term for value in record.values() if isinstance(value, str | int) for term in lexical.terms(str(value))}


def _identity_for(item: Property, record: Mapping[str, Any]) -> Any:
    fields = {tuple(stem(word) for word in identifier_words(key)): key for key in record}
    for wanted in (item.words, item.words[-1:], ("key",), ("name",), ("id",), ("number",)):
        if wanted in fields:
            return record[fields[wanted]]
    return None
