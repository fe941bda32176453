"""Arguments for a tool, found in the words of a request.

Required arguments are looked for in every way there is; optional ones are given only when the request clearly says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ai_platform_engineering.utils.llm.offline import language
from ai_platform_engineering.utils.llm.offline.language import (
    contains_phrase,
    identifier_words,
    is_negated,
    similarity,
    stem,
)
from ai_platform_engineering.utils.llm.offline.schemas import Profile, Property, compiled

_FREE_TEXT = frozenset(
    stem(word)
    for word in language.word_set(
        "summary title body description message text content comment query question note reason subject"
    )
)
_SEARCH_TEXT = frozenset(stem(word) for word in language.word_set("query search question keyword term text"))
_PERSON = frozenset(
    stem(word) for word in language.word_set("assignee owner author user reporter creator member requester responder")
)
_IDENTIFYING = frozenset(stem(word) for word in language.word_set("name id key identifier number slug ref"))

_NAME = r"[^\W_](?:[\w.\-/]*\w)?"
_TOKEN = re.compile(rf"#?{_NAME}")
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)")
_NUMBER = re.compile(r"(?<![\w.\-/])#?(\d+(?:\.\d+)?)(?![\w\-]|\.\d)")

_SHAPES: Mapping[str, re.Pattern[str]] = {
    "url": re.compile(r"\bhttps?://[^\s<>\"']+[^\s<>\"'.,;:!?)]", re.I),
    "cidr": re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f:]*:[0-9a-f:]+)/\d{1,3}\b", re.I),
    "address": re.compile(
        r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4})(?![\w.:]*[/\w])", re.I
    ),
    "email": re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b"),
    "host": re.compile(r"(?<![\w@.-])(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,}(?![\w-])"),
    "key": re.compile(r"\b[A-Z][A-Z0-9]+-\d+\b"),
}


@dataclass(slots=True)
class Filled:
    """Arguments found so far, and the required ones that were not."""

    arguments: dict[str, Any] = field(default_factory=dict)
    missing: list[Property] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Request:
    """One thing that is asked for. `known` are stems that name no particular thing: they describe agents and tools."""

    text: str
    known: frozenset[str] = frozenset()

    def names(self) -> Iterator[str]:
        """Words that look like the name of a particular thing, the likeliest first."""
        tokens = [token.strip("#") for token in _TOKEN.findall(_QUOTED.sub(" ", self.text))]
        marked = [token for token in tokens if re.search(r"[\d\-_./]", token) and not token.isdigit()]
        plain = [
            token for token in tokens if token not in marked and not token.isdigit() and not self._is_common(token)
        ]
        yield from (next(group for group in match.groups() if group) for match in _QUOTED.finditer(self.text))
        yield from marked
        yield from plain

    def _is_common(self, token: str) -> bool:
        word = token.lower()
        return (
            language.is_stop(word)
            or word in language.READ_VERBS
            or word in language.CHANGE_VERBS
            or word in language.GENERAL_NOUNS
            or any(similarity(stem(part), known) >= 0.7 for part in language.words(word) for known in self.known)
        )


def fill(profile: Profile, request: Request, given: Mapping[str, Any] | None = None) -> Filled:
    """Arguments of a tool from the request; `given` are values known from elsewhere."""
    filled = Filled(dict(given or {}))
    taken: set[str] = {str(value) for value in filled.arguments.values()}
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


def _value(item: Property, request: Request, profile: Profile, taken: set[str]) -> Any:
    for candidate in _candidates(item, request, profile):
        value = coerce(item, candidate)
        if value is not None and (str(value) not in taken or item.type == "boolean"):
            return value
    return None


def coerce(item: Property, candidate: Any) -> Any:
    """The candidate as a value the schema accepts, or None."""
    match item.type:
        case "integer" | "number":
            return _number(item, candidate)
        case "boolean":
            return candidate if isinstance(candidate, bool) else None
        case "array":
            return _array(item, candidate)
        case "object":
            return candidate if isinstance(candidate, dict) else None
        case _:
            return _text(item, candidate)


def _array(item: Property, candidate: Any) -> list[Any] | None:
    members = candidate if isinstance(candidate, list) else [candidate]
    values = [coerce(item.items, member) if item.items else member for member in members]
    return None if None in values else values


def _text(item: Property, candidate: Any) -> Any:
    if item.choices:
        return candidate if candidate in item.choices else None
    text = str(candidate).strip()
    pattern = compiled(item.pattern) if item.pattern else None
    if not text or (pattern and not pattern.search(text)):
        return None
    return text[: item.max_length]


def _number(item: Property, candidate: Any) -> int | float | None:
    try:
        number = float(candidate)
    except (TypeError, ValueError):
        return None
    if (item.minimum is not None and number < item.minimum) or (item.maximum is not None and number > item.maximum):
        return None
    if item.type == "number":
        return number
    return int(number) if number.is_integer() else None


def _candidates(item: Property, request: Request, profile: Profile) -> Iterator[Any]:
    text = request.text
    if item.choices:
        yield from _chosen(item, text)
        return
    match item.type:
        case "boolean":
            yield from _stated(item, text)
        case "integer" | "number":
            yield from _numbers(item, text, profile)
        case "array" if item.items is not None:
            yield from _candidates(item.items, request, profile)
        case "object":
            inner = {m.name: v for m in item.members if (v := _value(m, request, profile, set())) is not None}
            if item.required and all(m.name in inner for m in item.members if m.required):
                yield inner
        case _:
            yield from _texts(item, request, profile)


def _chosen(item: Property, text: str) -> Iterator[Any]:
    """Values of an enumeration that the text mentions, also by a word that means the same."""
    phrases = [(choice, tuple(stem(word) for word in identifier_words(str(choice)))) for choice in item.choices]
    spoken = language.stems(text)
    for choice, phrase in sorted(phrases, key=lambda pair: -len(pair[1])):
        if contains_phrase(text, phrase) and not is_negated(text, phrase):
            yield choice
    for choice, phrase in phrases:
        if len(phrase) == 1 and any(similarity(phrase[0], word) == 0.8 for word in spoken) and phrase[0] not in spoken:
            yield choice


def _stated(item: Property, text: str) -> Iterator[bool]:
    words = tuple(word for word in item.words if word not in {"is", "be"})
    if contains_phrase(text, words):
        yield not is_negated(text, words)


def _numbers(item: Property, text: str, profile: Profile) -> Iterator[str]:
    labels = "|".join(re.escape(word) for word in identifier_words(item.name))
    if labels:
        for match in re.finditer(rf"\b(?:{labels})s?\b\s*(?:of|is|to|=|:|#)?\s*#?(\d+(?:\.\d+)?)\b", text, re.I):
            yield match[1]
    if {"limit", "max", "count", "top"} & set(item.words):
        for match in re.finditer(r"\b(?:first|top|last|latest|newest|into|limit)\s+(\d+)\b", text, re.I):
            yield match[1]
    if "prefix" in item.words:
        for match in re.finditer(r"(?<![\d.:a-f])/(\d{1,3})\b", text):
            yield match[1]
    if "port" in item.words:
        for match in re.finditer(r"[\w\]]:(\d{1,5})\b", text):
            yield match[1]
    if item.required:
        yield from (match[1] for match in _NUMBER.finditer(text))


def _texts(item: Property, request: Request, profile: Profile) -> Iterator[str]:
    text = request.text
    yield from _labelled(item, text)
    if shape := _shape(item):
        yield from (match.group() for match in _SHAPES[shape].finditer(text))
        if shape == "host":
            yield from (match.group() for match in _SHAPES["address"].finditer(text))
        if shape in {"url", "cidr", "address", "email"}:
            return
    if _PERSON & set(item.words):
        yield from _person(text)
        return
    if item.pattern and (pattern := compiled(item.pattern)):
        yield from (token for token in _TOKEN.findall(text) if pattern.search(token))
    if _FREE_TEXT & set(item.words):
        if item.required or _SEARCH_TEXT & set(item.words):
            yield from _free_text(item, request, profile)
        return
    yield from _beside(item, request)
    if not item.required:
        yield from _listed_in_description(item, text)
        return
    if "key" in item.words:
        yield from (match.group() for match in _SHAPES["key"].finditer(text))
    if shape == "host":
        return
    yield from request.names()


def _labelled(item: Property, text: str) -> Iterator[str]:
    """`project: SHOP`, `project=SHOP`, `project "SHOP"`, `named demo`."""
    labels = [r"[\s_-]+".join(map(re.escape, identifier_words(item.name)))]
    if item.words and item.words[-1] in {"name", "title"}:
        labels.append("named|called|titled|entitled")
    for spelled in labels:
        for match in re.finditer(
            rf"\b(?:{spelled})\b\s*(?:[:=]\s*|\s(?:is|of|named|called)?\s*(?=[\"“`']))", text, re.I
        ):
            yield from _token_at(text, match.end())
    if len(labels) > 1:
        for match in re.finditer(rf"\b(?:{labels[1]})\s+", text, re.I):
            yield from _token_at(text, match.end())


def _token_at(text: str, position: int) -> Iterator[str]:
    if quoted := _QUOTED.match(text, position):
        yield next(group for group in quoted.groups() if group)
    elif token := re.compile(_NAME).match(text, position):
        yield token.group()


def _shape(item: Property) -> str | None:
    words = set(item.words)
    if item.format in {"uri", "url"} or words & {"url", "uri", "link"}:
        return "url"
    if item.format == "email" or "email" in words:
        return "email"
    if words & {"cidr", "network", "subnet"}:
        return "cidr"
    if words & {"ip", "address"} or item.format in {"ipv4", "ipv6"}:
        return "address"
    if words & {"host", "hostname", "domain", "fqdn"} or (
        "name" in words and {"dns", "domain", "hostname"} & set(language.terms(item.description))
    ):
        return "host"
    return None


def _person(text: str) -> Iterator[str]:
    if re.search(
        r"\b(?:my|mine|me)\b", re.sub(r"\b(?:show|give|tell|list|get|find|help|let)\s+me\b", "", text, flags=re.I), re.I
    ):
        yield "me"
    for match in re.finditer(rf"\b(?:assigned\s+to|assign\s+.*?\bto|owned\s+by|by|of)\s+@?({_NAME})", text, re.I):
        if not language.is_stop(match[1]):
            yield match[1]


def _beside(item: Property, request: Request) -> Iterator[str]:
    """A name next to the word for its kind: "the guestbook app", "project SHOP"."""
    kinds = [word for word in item.words if word not in _IDENTIFYING] or list(item.words)
    tokens = [match.group().strip("#") for match in _TOKEN.finditer(request.text)]
    for position, token in enumerate(tokens):
        if not any(similarity(stem(token), kind) >= 0.7 for kind in kinds):
            continue
        for neighbour in (position + 1, position - 1):
            if 0 <= neighbour < len(tokens):
                name = tokens[neighbour]
                if re.search(r"[\d\-_./]", name) or not request._is_common(name):
                    yield name


def _listed_in_description(item: Property, text: str) -> Iterator[str]:
    """A value that the property's description offers: "open, closed or all"."""
    if not {"state", "status", "severity", "priority", "kind", "type", "level", "urgency"} & set(item.words):
        return
    spoken = set(language.words(text))
    for option in re.findall(r"[A-Za-z][A-Za-z_-]+", item.description):
        if option.lower() in spoken and not language.is_stop(option) and stem(option) not in item.words:
            yield option


_TEXT_MARKERS = (
    r"(?:saying|stating|that\s+says?|with\s+(?:the\s+)?(?:text|message|comment|body|title|summary|subject))\b[:\s]*",
    r"(?<=\w):\s+",
    r"\b(?:for|about|regarding|concerning|that|because|matching|mentioning|containing|related\s+to|on)\s+",
)


def _free_text(item: Property, request: Request, profile: Profile) -> Iterator[str]:
    text = request.text.strip()
    yield from (next(group for group in match.groups() if group) for match in _QUOTED.finditer(text))
    if _SEARCH_TEXT & set(item.words) and profile.effect != "change":
        yield from _search_text(item, request)
        return
    for marker in _TEXT_MARKERS:
        if match := re.search(marker, text, re.I):
            rest = re.sub(r"^(?:the|a|an)\s+", "", text[match.end() :], flags=re.I).strip(" .!?\"'")
            if language.terms(rest):
                yield rest[:1].upper() + rest[1:]
    subject = re.sub(r"^\W*(?:please\s+|can you\s+|could you\s+)?\w+\s+(?:an?\s+|the\s+|new\s+)*", "", text, flags=re.I)
    if language.terms(subject):
        yield subject.strip(" .!?")


def _search_text(item: Property, request: Request) -> Iterator[str]:
    if match := re.search(
        r"\b(?:about|regarding|concerning|matching|mentioning|containing|related\s+to|with)\s+(.+)", request.text, re.I
    ):
        wanted = [word for word in re.findall(_NAME, match[1]) if not language.is_stop(word)]
        if wanted:
            yield " ".join(wanted)
    names = list(dict.fromkeys(request.names()))
    if names and (item.required or language.leading_verb(request.text) in language.LIST_VERBS - {"list"}):
        yield " ".join(names)
    if item.required:
        yield request.text.strip()


def from_records(item: Property, records: Sequence[Mapping[str, Any]], request: Request) -> Any:
    """A value for an argument out of things that were looked up: the one record that fits the request best."""
    wanted = set(language.terms(request.text)) - request.known
    scored = [(len(wanted & _record_terms(record)), record) for record in records]
    best = max((score for score, _ in scored), default=0)
    fitting = [record for score, record in scored if score == best] if best else list(records)
    return coerce(item, _identity_of(item, fitting[0])) if len(fitting) == 1 else None


def _record_terms(record: Mapping[str, Any]) -> set[str]:
    return {term for value in record.values() if isinstance(value, str | int) for term in language.terms(str(value))}


def _identity_of(item: Property, record: Mapping[str, Any]) -> Any:
    fields = {tuple(stem(word) for word in identifier_words(key)): key for key in record}
    for wanted in (item.words, item.words[-1:], ("key",), ("name",), ("id",), ("number",)):
        if wanted in fields:
            return record[fields[wanted]]
    return None
