"""Text values of arguments: names of things, people, search terms, dictated text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.english.lexical import (
    best_similarity,
    identifier_words,
    is_plural,
    similarity,
    stem,
)
from ai_platform_engineering.offline_model.english.requests import NAME, RequestText, name_tokens, request_names
from ai_platform_engineering.offline_model.english.sentences import QUOTED, leading_verb, quoted_texts
from ai_platform_engineering.offline_model.english.vocabulary import (
    CREATE_VERBS,
    DETERMINERS,
    LIST_VERBS,
    PREPOSITIONS,
    word_set,
)
from ai_platform_engineering.offline_model.tool_calls import values
from ai_platform_engineering.offline_model.tool_calls.schemas import Property, ToolProfile, compiled


def _stem_set(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in word_set(text))


_FREE_TEXT = _stem_set("summary title body description message text content comment query question note reason subject")
SEARCH_WORDS = _stem_set("query search question keyword term")
_PERSON = _stem_set("assignee owner author user reporter creator member requester responder")
_IDENTIFYING = _stem_set("name id key identifier number slug ref")
_CREATE = frozenset(stem(verb) for verb in CREATE_VERBS)
_SCALE = _stem_set("state status severity priority kind type level urgency")

_PLACED = re.compile(rf"\b(?:in|on|of|for|from|at|with|within|about)\s+(?:the\s+)?#?(?P<name>{NAME})", re.I)
_ABOUT = re.compile(r"\b(?:about|regarding|concerning|matching|mentioning|containing|related\s+to)\s+(.+)", re.I)
_ADDRESSING_ME = re.compile(r"\b(?:show|give|tell|list|get|find|help|let|send|remind)\s+me\b", re.I)
_ASSIGNED = re.compile(rf"\b(?:assigned\s+to|assign\s+\S+(?:\s+\S+)?\s+to|owned\s+by|by)\s+@?({NAME})", re.I)
_OWNER = re.compile(r"\b([^\W\d_]\w+)['’]s\s+(?=[\w-]+)(?!(?:going|happening|wrong|the|up|next|new|left)\b)")
_ASSIGNMENT = re.compile(rf",?\s+(?:and\s+)?(?:assign(?:ed)?(?:\s+it)?|to\s+be\s+assigned)\s+to\s+@?{NAME}\W*$", re.I)
_DICTATION = (
    r"\b(?:saying|stating|that\s+says?|with\s+(?:the\s+)?(?:text|message|comment|body|title|summary|subject))\b[:\s]*",
    r"(?<=\w):\s+",
)
"""Markers before dictated text, which is used word for word."""
_TOPIC = (r"\b(?:for|about|regarding|concerning|that|because)\s+", r"\bon\s+")
"""Markers before a topic, the most reliable first."""


def text_candidates(item: Property, request: RequestText, profile: ToolProfile) -> Iterator[str]:
    """Parts of the request that can be the value of the argument, the most likely first."""
    words = set(item.words)
    yield from _labelled(item, request.text)
    if shape := values.shape(item):
        yield from values.shaped(shape, request.text)
        return
    if _PERSON & words:
        yield from _person(item, request.text)
        return
    if item.pattern and (pattern := compiled(item.pattern)):
        yield from (token for token in name_tokens(request.text) if pattern.search(token))
    if _FREE_TEXT & words:
        if item.required or SEARCH_WORDS & words:
            yield from _free_text(item, request, profile)
        return
    request = _without_free_text(request, profile)
    yield from _near_noun(item, request)
    if not item.required:
        yield from _listed_values(item, request.text)
        if _container_argument(profile) is item:
            yield from _container_values(request, profile)
        return
    if "key" in words:
        yield from values.shaped("key", request.text)
    if request.may_ask and names_something_new(item, profile):
        yield from _new_names(request, profile)
        return
    yield from request_names(request)
    yield from _near_noun(item, request, common=True)


def names_something_new(item: Property, profile: ToolProfile) -> bool:
    """Whether an argument is the name of the thing that a tool creates, so that no lookup can find it."""
    kinds = {word for word in item.words if word not in _IDENTIFYING}
    return item.type == "string" and profile.verb in _CREATE and kinds <= set(profile.nouns)


def _new_names(request: RequestText, profile: ToolProfile) -> Iterator[str]:
    """Names for a new thing: quoted, or next to its noun. A name after a preposition belongs to another thing."""
    yield from quoted_texts(request.text)
    tokens = [token for token in name_tokens(QUOTED.sub(" ", request.text)) if token.lower() not in DETERMINERS]
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        is_beside = any(best_similarity(stem(other), profile.nouns) > 0 for other in (before, after))
        if is_beside and request.may_name(token) and before.lower() not in PREPOSITIONS:
            yield token


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


def _person(item: Property, text: str) -> Iterator[str]:
    if re.search(r"\b(?:my|mine|me)\b", _ADDRESSING_ME.sub("", text), re.I):
        yield "me"
    if re.search(r"\bunassigned\b", text, re.I) and "unassigned" in item.description.lower():
        yield "unassigned"
    for match in _ASSIGNED.finditer(text):
        if not lexical.is_stop_word(match[1]):
            yield match[1]
    yield from (name for name in _OWNER.findall(text) if not lexical.is_stop_word(name))


def _near_noun(item: Property, request: RequestText, *, common: bool = False) -> Iterator[str]:
    """A name next to its noun: "the guestbook app", "project SHOP". `common` also allows ordinary words."""
    kinds = [word for word in item.words if word not in _IDENTIFYING] or list(item.words)
    tokens = name_tokens(request.text)
    for position, token in enumerate(tokens):
        if not any(similarity(stem(token), kind) > 0 for kind in kinds):
            continue
        neighbours = [at for at in (position + 1, position - 1) if 0 <= at < len(tokens)]
        for at in neighbours:
            if request.may_name(tokens[at]) or (
                common
                and at == position - 1 > 0
                and tokens[at - 1].lower() == "the"
                and not _describes(tokens[at], item)
            ):
                yield tokens[at]


def _container_argument(profile: ToolProfile) -> Property | None:
    """The optional argument that limits a tool to one container, if the tool has exactly one such argument."""
    places = [
        item for item in profile.properties if not item.required and item.type == "string" and _is_container(item)
    ]
    return places[0] if len(places) == 1 and profile.effect != "get" else None


def _is_container(item: Property) -> bool:
    return not (item.choices or values.shape(item) or set(item.words) & (_FREE_TEXT | _PERSON | _SCALE))


def _container_values(request: RequestText, profile: ToolProfile) -> Iterator[str]:
    """Names after a preposition or before a plural noun: "incidents of checkout", "checkout incidents".

    If the tool also takes search terms, only a name in capitals counts: "tickets in SHOP".
    """
    searches = profile.effect == "change" or any(SEARCH_WORDS & set(item.words) for item in profile.properties)
    for name in _container_names(request, profile):
        if name.isupper() or not searches:
            yield name


def _container_names(request: RequestText, profile: ToolProfile) -> Iterator[str]:
    text = lexical.joined(request.text)
    tokens = name_tokens(text)
    found = [match["name"] for match in _PLACED.finditer(text)]
    found += [name for name, kind in pairwise(tokens) if is_plural(kind) and best_similarity(stem(kind), profile.nouns)]
    yield from (name for name in found if request.may_name(name))


def _describes(word: str, item: Property) -> bool:
    return lexical.is_stop_word(word) or stem(word) in item.words


def _listed_values(item: Property, text: str) -> Iterator[str]:
    """A value that the description of a scale lists: "open, closed or all"."""
    if not _SCALE & set(item.words):
        return
    spoken = set(lexical.words(text))
    for option in re.findall(r"[A-Za-z][A-Za-z_-]+", item.description):
        if option.lower() in spoken and not lexical.is_stop_word(option) and stem(option) not in item.words:
            yield option


def _free_text(item: Property, request: RequestText, profile: ToolProfile) -> Iterator[str]:
    text = request.text.strip()
    yield from quoted_texts(text)
    if SEARCH_WORDS & set(item.words) and profile.effect != "change":
        yield from _search_text(item, request, profile)
        return
    for marker in _DICTATION:
        if (match := re.search(marker, text, re.I)) and lexical.terms(text[match.end() :]):
            yield _without_assignee(text[match.end() :], profile).strip()
    for marker in _TOPIC:
        if match := re.search(marker, text, re.I):
            topic = _without_assignee(text[match.end() :], profile)
            topic = re.sub(r"^(?:the|a|an)\s+", "", topic, flags=re.I).strip(" .!?\"'")
            if lexical.terms(topic):
                yield topic[:1].upper() + topic[1:]
    names = [name for name in request_names(request) if name.isalpha()]
    if names and not request.may_ask:
        yield " ".join(names)


def _has_person(profile: ToolProfile) -> bool:
    return any(_PERSON & set(item.words) for item in profile.properties)


def _without_assignee(text: str, profile: ToolProfile) -> str:
    """The dictated text without "assigned to ...", if the tool has an argument for the assignee."""
    return _ASSIGNMENT.sub("", text) if _has_person(profile) else text


def _without_free_text(request: RequestText, profile: ToolProfile) -> RequestText:
    """The request without dictated text: names in it are no arguments."""
    if profile.effect != "change" or not any(_FREE_TEXT & set(item.words) for item in profile.required):
        return request
    for markers in (_DICTATION, _TOPIC[:1]):
        starts = [match.start() for marker in markers if (match := re.search(marker, request.text, re.I))]
        if starts:
            return replace(request, text=request.text[: min(starts)])
    return request


def _search_text(item: Property, request: RequestText, profile: ToolProfile) -> Iterator[str]:
    if match := _ABOUT.search(request.text):
        wanted = [word for word in re.findall(NAME, match[1]) if not lexical.is_stop_word(word)]
        if wanted:
            yield " ".join(wanted)
    names = request_names(request)
    if names and (item.required or leading_verb(request.text) in LIST_VERBS - {"list"}):
        yield " ".join(names)
    owners = set(_OWNER.findall(request.text)) if _has_person(profile) else set()
    yield from (
        name
        for name in _container_names(request, profile)
        if name not in owners and not (name.isupper() and _container_argument(profile))
    )
    if item.required:
        yield request.text.strip()
