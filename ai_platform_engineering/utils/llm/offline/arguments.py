"""Arguments for a tool, found in the words of a request.

Required arguments are looked for in every way there is; optional ones are given only when the request clearly says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ai_platform_engineering.utils.llm.offline import language, values
from ai_platform_engineering.utils.llm.offline.language import (
    SYNONYM,
    best_similarity,
    identifier_words,
    is_plural,
    similarity,
    stem,
)
from ai_platform_engineering.utils.llm.offline.requests import NAME, Request, is_common, name_tokens, request_names
from ai_platform_engineering.utils.llm.offline.schemas import Profile, Property, compiled
from ai_platform_engineering.utils.llm.offline.sentences import QUOTED, leading_verb, quoted_texts
from ai_platform_engineering.utils.llm.offline.vocabulary import LIST_VERBS, word_set


def _stem_set(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in word_set(text))


_FREE_TEXT = _stem_set("summary title body description message text content comment query question note reason subject")
_SEARCH_TEXT = _stem_set("query search question keyword term")
_PERSON = _stem_set("assignee owner author user reporter creator member requester responder")
_IDENTIFYING = _stem_set("name id key identifier number slug ref")
_SCALE = _stem_set("state status severity priority kind type level urgency")

_OPPOSITES: Mapping[tuple[str, ...], str] = {
    ("private",): "public",
    ("public",): "private",
    ("enabled",): "disabled",
    ("open",): "closed",
}
_PLACED = re.compile(rf"\b(?:in|on|of|for|from|at|with|within|about)\s+(?:the\s+)?#?(?P<name>{NAME})", re.I)
_NUMBER = re.compile(r"(?<![\w.\-/])#?(\d+(?:\.\d+)?)(?![\w\-/]|\.\d)|(?<=\w)#(\d+)\b")


@dataclass(frozen=True, slots=True)
class Filled:
    """Arguments found, and the required ones that were not."""

    arguments: dict[str, Any] = field(default_factory=dict)
    missing: list[Property] = field(default_factory=list)


def fill(profile: Profile, request: Request, given: Mapping[str, Any] | None = None) -> Filled:
    """Arguments of a tool from the request; `given` are values known from elsewhere."""
    filled = Filled(dict(given or {}))
    request = replace(request, known=request.known | _stated_terms(profile, request.text))
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
            yield from _texts(item, request, profile)


def _chosen(item: Property, text: str, profile: Profile) -> Iterator[Any]:
    """Values of an enumeration that the text states, the longest first, else by a word that means the same."""
    phrases = [(choice, identifier_words(str(choice))) for choice in item.choices]
    for choice, phrase in sorted(phrases, key=lambda pair: -len(pair[1])):
        if language.states(text, phrase):
            yield choice
    spoken = [word for word in language.stems(text) if best_similarity(word, profile.nouns) == 0]
    for choice, phrase in phrases:
        if len(phrase) == 1 and any(similarity(stem(phrase[0]), word) == SYNONYM for word in spoken):
            yield choice


def _stated(item: Property, text: str) -> Iterator[bool]:
    phrase = tuple(word for word in identifier_words(item.name) if word not in {"is", "be"})
    stated = language.states(text, phrase)
    if stated is None and (opposite := _OPPOSITES.get(phrase)) is not None:
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


def _texts(item: Property, request: Request, profile: Profile) -> Iterator[str]:
    words = set(item.words)
    yield from _labelled(item, request.text)
    if shape := values.shape(item):
        yield from values.shaped(shape, request.text)
        return
    if _PERSON & words:
        yield from _person(request.text)
        return
    if item.pattern and (pattern := compiled(item.pattern)):
        yield from (token for token in name_tokens(request.text) if pattern.search(token))
    if _FREE_TEXT & words:
        if item.required or _SEARCH_TEXT & words:
            yield from _free_text(item, request, profile)
        return
    yield from _beside(item, request)
    if not item.required:
        yield from _offered(item, request.text)
        if _place_of(profile) is item:
            yield from _placed(request, profile)
        return
    if "key" in words:
        yield from values.shaped("key", request.text)
    yield from request_names(request)
    yield from _beside(item, request, common=True)


def _labelled(item: Property, text: str) -> Iterator[str]:
    """`project: SHOP`, `project=SHOP`, `project "SHOP"`, `named demo`."""
    own = r"[\s_-]+".join(map(re.escape, identifier_words(item.name)))
    markers = [rf"\b(?:{own})\s*[:=]\s*", rf"\b(?:{own})\s+(?:(?:is|of|named|called)\s+)?(?=[\"“`'])"]
    if item.words[-1:] in {("name",), ("titl",)}:
        markers.append(r"\b(?:named|called|titled|entitled)\s+")
    for marker in markers:
        for match in re.finditer(marker, text, re.I):
            if quoted := QUOTED.match(text, match.end()):
                yield next(group for group in quoted.groups() if group)
            elif token := re.compile(NAME).match(text, match.end()):
                yield token.group()


def _person(text: str) -> Iterator[str]:
    told = re.sub(r"\b(?:show|give|tell|list|get|find|help|let|send|remind)\s+me\b", "", text, flags=re.I)
    if re.search(r"\b(?:my|mine|me)\b", told, re.I):
        yield "me"
    if re.search(r"\bunassigned\b", text, re.I):
        yield "unassigned"
    for match in re.finditer(rf"\b(?:assigned\s+to|assign\s+.*?\bto|owned\s+by|by)\s+@?({NAME})", text, re.I):
        if not language.is_stop_word(match[1]):
            yield match[1]


def _beside(item: Property, request: Request, *, common: bool = False) -> Iterator[str]:
    """A name next to the word for its kind: "the guestbook app", "project SHOP". `common` allows everyday words too."""
    kinds = [word for word in item.words if word not in _IDENTIFYING] or list(item.words)
    tokens = name_tokens(request.text)
    for position, token in enumerate(tokens):
        if not any(similarity(stem(token), kind) > 0 for kind in kinds):
            continue
        neighbours = [at for at in (position + 1, position - 1) if 0 <= at < len(tokens)]
        for at in neighbours:
            if not is_common(tokens[at], request.known) or (
                common
                and at == position - 1 > 0
                and tokens[at - 1].lower() == "the"
                and not _describes(tokens[at], item)
            ):
                yield tokens[at]


def _place_of(profile: Profile) -> Property | None:
    """The one optional argument that says whose things are wanted, where a tool has just one such."""
    places = [item for item in profile.properties if not item.required and item.type == "string" and _is_place(item)]
    return places[0] if len(places) == 1 and profile.effect != "get" else None


def _is_place(item: Property) -> bool:
    return not (item.choices or values.shape(item) or set(item.words) & (_FREE_TEXT | _PERSON | _SCALE))


def _placed(request: Request, profile: Profile) -> Iterator[str]:
    """Names after a preposition or before the kind: "incidents of checkout", "checkout incidents".

    Where other words may stand there too, only a name in capitals is a place: "tickets in SHOP".
    """
    searches = profile.effect == "change" or any(_SEARCH_TEXT & set(item.words) for item in profile.properties)
    for name in _whose(request, profile):
        if name.isupper() or not searches:
            yield name


def _whose(request: Request, profile: Profile) -> Iterator[str]:
    text = language.joined(request.text)
    tokens = name_tokens(text)
    found = [match["name"] for match in _PLACED.finditer(text)]
    found += [name for name, kind in pairwise(tokens) if is_plural(kind) and best_similarity(stem(kind), profile.nouns)]
    yield from (name for name in found if not is_common(name, request.known))


def _describes(word: str, item: Property) -> bool:
    return language.is_stop_word(word) or stem(word) in item.words


def _offered(item: Property, text: str) -> Iterator[str]:
    """A value that the description of a scale offers: "open, closed or all"."""
    if not _SCALE & set(item.words):
        return
    spoken = set(language.words(text))
    for option in re.findall(r"[A-Za-z][A-Za-z_-]+", item.description):
        if option.lower() in spoken and not language.is_stop_word(option) and stem(option) not in item.words:
            yield option


_DICTATION = (
    r"\b(?:saying|stating|that\s+says?|with\s+(?:the\s+)?(?:text|message|comment|body|title|summary|subject))\b[:\s]*",
    r"(?<=\w):\s+",
)
"""After these begins what is to be written down as it is."""
_TOPIC = (r"\b(?:for|about|regarding|concerning|that|because)\s+", r"\bon\s+")
"""After these begins what it is about, the surest first."""


def _free_text(item: Property, request: Request, profile: Profile) -> Iterator[str]:
    text = request.text.strip()
    yield from quoted_texts(text)
    if _SEARCH_TEXT & set(item.words) and profile.effect != "change":
        yield from _search_text(item, request, profile)
        return
    for marker in _DICTATION:
        if (match := re.search(marker, text, re.I)) and language.terms(text[match.end() :]):
            yield text[match.end() :].strip()
    for marker in _TOPIC:
        if match := re.search(marker, text, re.I):
            topic = re.sub(r"^(?:the|a|an)\s+", "", text[match.end() :], flags=re.I).strip(" .!?\"'")
            if language.terms(topic):
                yield topic[:1].upper() + topic[1:]
    names = [name for name in request_names(request) if name.isalpha()]
    if names:
        yield " ".join(names)


def _search_text(item: Property, request: Request, profile: Profile) -> Iterator[str]:
    if match := re.search(
        r"\b(?:about|regarding|concerning|matching|mentioning|containing|related\s+to)\s+(.+)", request.text, re.I
    ):
        wanted = [word for word in re.findall(NAME, match[1]) if not language.is_stop_word(word)]
        if wanted:
            yield " ".join(wanted)
    names = request_names(request)
    if names and (item.required or leading_verb(request.text) in LIST_VERBS - {"list"}):
        yield " ".join(names)
    yield from (name for name in _whose(request, profile) if not (name.isupper() and _place_of(profile)))
    if item.required:
        yield request.text.strip()


def from_records(item: Property, records: Sequence[Mapping[str, Any]], request: Request) -> Any:
    """A value for an argument out of things that were looked up: the one that fits the request best."""
    wanted = {term for term in language.terms(request.text) if term not in request.known}
    scored = [(len(wanted & _record_terms(record)), record) for record in records]
    best = max((score for score, _ in scored), default=0)
    fitting = [record for score, record in scored if score == best]
    return values.coerce(item, _identity_for(item, fitting[0])) if len(fitting) == 1 else None


def _record_terms(record: Mapping[str, Any]) -> set[str]:
    return {term for value in record.values() if isinstance(value, str | int) for term in language.terms(str(value))}


def _identity_for(item: Property, record: Mapping[str, Any]) -> Any:
    fields = {tuple(stem(word) for word in identifier_words(key)): key for key in record}
    for wanted in (item.words, item.words[-1:], ("key",), ("name",), ("id",), ("number",)):
        if wanted in fields:
            return record[fields[wanted]]
    return None
