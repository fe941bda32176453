"""Constraints: phrases of a request that filter, sort, limit or condition its results.

This module only finds the phrases. `tool_calls` turns some into arguments, `answers.filtering` applies others to the
results and reports the rest as not applied.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

from ai_platform_engineering.offline_model.english import lexical, time_ranges
from ai_platform_engineering.offline_model.english.sentences import QUOTED
from ai_platform_engineering.offline_model.english.vocabulary import POLITE, QUESTION_WORDS, word_set

ConstraintKind = Literal["time", "exclusion", "comparison", "order", "count", "grouping", "condition"]
Comparison = Literal["more", "less", "at least", "at most", "exactly"]

_NAME = r"[^\W_][\w.#/@'’-]*"
_ENDS = r"(?:and|or|nor|but|in|of|for|from|on|at|with|that|which|who|sorted|ordered|because|so|yet|please|then)"
_WORDS = rf"{_NAME}(?:\s+(?!{_ENDS}\b){_NAME}){{0,2}}"
_FILLERS = r"(?:(?:been|being|yet|currently|the|a|an|any|my|is|are|in\s+(?:state|status|project)|of\s+type)\s+)*"
_EXCLUSION = re.compile(
    rf"(?:,\s*)?\b(?:but\s+)?(?P<except>except(?:\s+for)?|excluding|other\s+than|apart\s+from|besides|but\s+not"
    rf"|(?:do\s+not|don['’]t)\s+(?:show|list|include|give|want)(?:\s+me)?)\s+{_FILLERS}"
    rf"(?P<excepted>{_WORDS}(?:(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+){_NAME}(?=\s*(?:[,.?!;]|$|and\b|or\b)))*)"
    r"|\bun(?P<un>resolved|merged|acknowledged|synced|closed|finished|completed)\b"
    rf"|\b(?:(?:that|which|who)\s+(?:are|is|were|was|have|has|do|does)\s+)?"
    rf"(?P<not>not|never|without|isn['’]t|aren['’]t|wasn['’]t|weren['’]t|with\s+no|ha(?:s|ve)\s+no|non)[\s-]+{_FILLERS}"
    rf"(?P<negated>(?:(?:in|assigned\s+to|owned\s+by|created\s+by|by|out\s+of)\s+)?{_WORDS})",
    re.I,
)
_COMPARISON = re.compile(
    rf"\b(?:(?:with|has|have|having)\s+)?(?P<than>more\s+than|over|above|at\s+least|fewer\s+than|less\s+than|under|below"
    rf"|at\s+most|exactly|up\s+to)\s+(?P<number>\d+(?:\.\d+)?)(?P<what>(?:\s+(?!{_ENDS}\b){_NAME}){{0,3}})",
    re.I,
)
_COMPARISONS: dict[str, Comparison] = {
    "more than": "more", "over": "more", "above": "more", "fewer than": "less", "less than": "less", "under": "less",
    "below": "less", "at least": "at least", "at most": "at most", "up to": "at most", "exactly": "exactly",
}  # fmt: skip
_DESCENDING = r"descending|desc|highest\s+first|(?:newest|latest|most\s+recent)\s+first|largest\s+first"
_ASCENDING = r"ascending|asc|lowest\s+first|(?:oldest|earliest)\s+first|smallest\s+first|alphabetically"
_ORDER = re.compile(
    rf"(?:,\s*)?\b(?:(?:and\s+)?(?:sort(?:ed)?|order(?:ed)?|rank(?:ed)?)\s+(?:them\s+)?by\s+(?P<by>[\w-]+(?:\s+(?:date|time|status))?)"
    rf"(?:\s+(?:\(?(?:(?P<down>{_DESCENDING})|(?P<up>{_ASCENDING}))\)?))?"
    rf"|(?P<first>(?:newest|latest|most\s+recent|oldest|earliest|highest|lowest|largest|smallest)\s+first)"
    rf"|(?:sort(?:ed)?\s+|order(?:ed)?\s+)?(?P<alphabet>alphabetically))\b",
    re.I,
)
_SORTED = re.compile(
    rf"\b(?:sort|order|rank)\b[^.?!;]*?\s(?P<tail>by\s+(?P<by>[\w-]+)(?:\s+(?:(?P<down>{_DESCENDING})|(?P<up>{_ASCENDING})))?)\b",
    re.I,
)
_EXTREME = r"newest|latest|most\s+recent(?:ly\s+\w+)?|oldest|earliest|last|first|top"
_COUNT = re.compile(
    rf"\b(?:the\s+)?(?:(?P<end>{_EXTREME})\s+(?P<number>\d{{1,3}})|(?P<before>\d{{1,3}})\s+(?P<edge>{_EXTREME})"
    rf"|(?:only|just|at\s+most|limit(?:ed)?\s+to)\s+(?P<only>\d{{1,3}}))\b(?!\s*(?:minute|hour|day|week|month|year))"
    rf"|\b(?:the|its|their|my|our)\s+(?P<one>newest|latest|most\s+recent(?:ly\s+\w+)?|oldest|earliest|last)\s+(?P<noun>{_NAME}(?:\s+request)?)",
    re.I,
)
_GROUPING = re.compile(
    r"(?:,\s*)?\b(?:group(?:ed)?\s+(?:them\s+)?by|broken\s+down\s+by|per|for\s+each|by\s+each)\s+(?P<by>[\w-]+)", re.I
)
_CONDITION = re.compile(r"\b(?:if|unless|once|whenever|as\s+soon\s+as|only\s+when|provided\s+that)\s+[^.?!;,]+", re.I)
_CLOCK = re.compile(r"\b(?:at|by|around)\s+(?:\d{1,2}:\d\d|\d{1,2}\s*(?:am|pm)|noon|midnight)\b", re.I)
_EDGE = re.compile(r"\b(?:newest|oldest|earliest|latest|most\s+recent)\b", re.I)
_AUXILIARIES = word_set("do does did can could should will would must may")
_MASK = "\0"
_NOT_EXCLUDED = POLITE | QUESTION_WORDS | frozenset({"only", "just", "sure", "know", "mind", "worry"})


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint, and the span of its phrase in the text."""

    kind: ConstraintKind
    phrase: str
    start: int
    end: int
    words: str = ""
    """Its subject: the excluded value, or the field to compare, sort or group by."""
    number: float | None = None
    comparison: Comparison | None = None
    descending: bool | None = None


@lru_cache(maxsize=512)
def constraints(text: str) -> tuple[Constraint, ...]:
    """The constraints of a text, in order. Quoted text contains none."""
    plain = _masked(text, [match.span() for match in QUOTED.finditer(text)])
    found: list[Constraint] = []
    for pattern, parse in _PARSERS:
        here = [constraint for match in pattern.finditer(plain) if (constraint := parse(match)) is not None]
        found += here
        plain = _masked(plain, [(item.start, item.end) for item in here])
    return tuple(sorted(found, key=lambda item: item.start))


def _masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in spans:
        text = f"{text[:start]}{_MASK * (end - start)}{text[end:]}"
    return text


def without_constraints(text: str, removed: Iterable[Constraint]) -> str:
    """The text without the phrases of the given constraints."""
    for constraint in sorted(removed, key=lambda item: -item.start):
        text = f"{text[: constraint.start]} {text[constraint.end :]}"
    return re.sub(r"\s+([?.!,;])", r"\1", re.sub(r"[ \t]{2,}", " ", text)).strip()


def _constraint(
    kind: ConstraintKind,
    match: re.Match[str],
    *,
    words: str = "",
    number: float | None = None,
    comparison: Comparison | None = None,
    descending: bool | None = None,
) -> Constraint:
    phrase = match.group().lstrip(", ")
    start = match.end() - len(phrase)
    phrase = phrase.rstrip()
    return Constraint(kind, phrase, start, start + len(phrase), words, number, comparison, descending)


def _parse_order(match: re.Match[str]) -> Constraint:
    if first := match["first"]:
        edge = first.split()[0].lower()
        return _constraint(
            "order", match, words=_field(edge), descending=edge not in {"oldest", "earliest", "lowest", "smallest"}
        )
    if match["alphabet"]:
        return _constraint("order", match, words="name", descending=False)
    down, up = match["down"], match["up"]
    return _constraint("order", match, words=match["by"], descending=True if down else False if up else None)


def _parse_sort(match: re.Match[str]) -> Constraint:
    descending = True if match["down"] else False if match["up"] else None
    return Constraint("order", match["tail"], *match.span("tail"), match["by"], descending=descending)


def _parse_edge(match: re.Match[str]) -> Constraint:
    edge = match.group().lower()
    return _constraint("order", match, words="time", descending=edge not in {"oldest", "earliest"})


def _field(edge: str) -> str:
    return "priority" if edge in {"highest", "lowest"} else "size" if edge in {"largest", "smallest"} else "time"


def _parse_comparison(match: re.Match[str]) -> Constraint:
    than = _COMPARISONS[" ".join(match["than"].lower().split())]
    return _constraint(
        "comparison", match, words=(match["what"] or "").strip(), number=float(match["number"]), comparison=than
    )


def _parse_count(match: re.Match[str]) -> Constraint:
    """A limit and the end it counts from. Before a plural without a number ("the latest incidents") it only sorts."""
    edge = " ".join((match["end"] or match["edge"] or match["one"] or "").lower().split())
    descending = False if edge in {"oldest", "earliest"} else True if edge and edge not in {"first", "top"} else None
    words = "updated" if edge.endswith("updated") else "time" if descending is not None else ""
    if match["one"]:
        noun = match["noun"].split()[-1]
        end = match.end() - len(match["noun"])
        plural = lexical.is_plural(noun)
        phrase = match.string[match.start() : end].rstrip()
        return Constraint(
            "order" if plural else "count", phrase, match.start(), match.start() + len(phrase), words,
            None if plural else 1, None, descending,
        )  # fmt: skip
    number = match["number"] or match["before"] or match["only"]
    return _constraint("count", match, words=words, number=float(number), descending=descending)


def _parse_exclusion(match: re.Match[str]) -> Constraint | None:
    """An exclusion. A negated request ("do not sync it") and "not only" are none."""
    if match["un"]:
        return _constraint("exclusion", match, words=match["un"])
    words = (match["excepted"] or match["negated"]).strip(" ?.!,;:")
    before = lexical.words(match.string[: match.start()])[-1:]
    is_request = (match["not"] or "").lower() in {"not", "never"} and _AUXILIARIES.intersection(before)
    if is_request or words.split()[0].lower() in _NOT_EXCLUDED:
        return None
    return _constraint("exclusion", match, words=words)


_PARSERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Constraint | None]], ...] = (
    (_CONDITION, partial(_constraint, "condition")),
    (time_ranges.PHRASE, partial(_constraint, "time")),
    (_CLOCK, partial(_constraint, "time")),
    (_ORDER, _parse_order),
    (_SORTED, _parse_sort),
    (_GROUPING, lambda match: _constraint("grouping", match, words=match["by"])),
    (_COMPARISON, _parse_comparison),
    (_COUNT, _parse_count),
    (_EXCLUSION, _parse_exclusion),
    (_EDGE, _parse_edge),
)
"""Patterns with their parsers, in order of precedence: text matched by one is hidden from the next."""
