"""The part of a text that shows why it was found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.stems import stem
from ai_platform_engineering.text.query_words import places_of_words, query_words

_WITHIN_A_NAME: Final = re.compile(r"[_\-./:]")
_CUT: Final = "…"


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    stem: str


def snippet(text: str, query: str, length: int = 300) -> str:
    """The `length` characters with most of the query's words, marked `**so**`; marks and `…` come on top."""
    text = text.strip()
    matches = _matches(text, query)
    start, end = _window(text, _densest(matches, length), length)
    shown = _marked(text, [match for match in matches if start <= match.start and match.end <= end], start, end)
    return f"{_CUT if start else ''}{shown.strip()}{_CUT if end < len(text) else ''}"


def _matches(text: str, query: str) -> list[_Match]:
    stems = {stem(word) for word in query_words(query)}
    # Lower case may be longer (`İ`), so each word is lowered on its own.
    found = (_Match(start, end, stem(text[start:end].lower())) for start, end in places_of_words(text))
    return [match for match in found if match.stem in stems]


def _densest(matches: Sequence[_Match], length: int) -> tuple[int, int]:
    """The span within `length` with the most different words, then the most words, then the first."""
    best, best_span = (0, 0), (0, 0)
    inside: Counter[str] = Counter()
    first = 0
    for last, match in enumerate(matches):
        inside[match.stem] += 1
        while match.end - matches[first].start > length and first < last:
            inside[matches[first].stem] -= 1
            inside += Counter()
            first += 1
        worth = (len(inside), last - first + 1)
        if worth > best:
            best, best_span = worth, (matches[first].start, match.end)
    return best_span


def _window(text: str, span: tuple[int, int], length: int) -> tuple[int, int]:
    """The span in the middle of its surroundings, without words cut in half."""
    spare = length - (span[1] - span[0])
    start = max(0, min(span[0] - spare // 2, len(text) - length))
    end = min(len(text), start + length)
    whole_start, whole_end = start, end
    while 0 < whole_start < span[0] and not text[whole_start - 1].isspace():
        whole_start += 1
    while span[1] < whole_end < len(text) and not text[whole_end].isspace():
        whole_end -= 1
    # A run without spaces that fills the window has no better place to be cut.
    return (whole_start, whole_end) if text[whole_start:whole_end].strip() else (start, end)


def _marked(text: str, matches: Sequence[_Match], start: int, end: int) -> str:
    pieces = []
    place = start
    for first, last in _runs(text, matches):
        already = text[first - 2 : first] == "**" == text[last : last + 2]
        mark = "" if already else "**"
        pieces += [text[place:first], mark, text[first:last], mark]
        place = last
    return "".join([*pieces, text[place:end]])


def _runs(text: str, matches: Sequence[_Match]) -> list[tuple[int, int]]:
    """Matches that are parts of one name (`RAG_SERVER_URL`), or overlap, are marked as one."""
    runs: list[tuple[int, int]] = []
    for match in matches:
        if runs and (match.start <= runs[-1][1] or _WITHIN_A_NAME.fullmatch(text[runs[-1][1] : match.start])):
            runs[-1] = (runs[-1][0], match.end)
        else:
            runs.append((match.start, match.end))
    return runs
