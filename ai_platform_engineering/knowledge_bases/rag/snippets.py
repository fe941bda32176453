"""The excerpt of a chunk that shows why it was found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.stems import stem
from ai_platform_engineering.text.query_words import query_words, word_spans

_WITHIN_A_NAME: Final = re.compile(r"[_\-./:]")
_ELLIPSIS: Final = "…"


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    stem: str


def snippet(text: str, query: str, length: int = 300) -> str:
    """The `length` characters with most of the query's words, which are in bold (`**word**`). The asterisks and `…` are
    not counted."""
    text = text.strip()
    matches = _matches(text, query)
    start, end = _window(text, _densest(matches, length), length)
    shown = _highlighted(text, [match for match in matches if start <= match.start and match.end <= end], start, end)
    return f"{_ELLIPSIS if start else ''}{shown.strip()}{_ELLIPSIS if end < len(text) else ''}"


def _matches(text: str, query: str) -> list[_Match]:
    stems = {stem(word) for word in query_words(query)}
    # Lower case can be longer (`İ`), so each word is converted on its own: positions in the text must not shift.
    found = (_Match(start, end, stem(text[start:end].lower())) for start, end in word_spans(text))
    return [match for match in found if match.stem in stems]


def _densest(matches: Sequence[_Match], length: int) -> tuple[int, int]:
    """The span of at most `length` characters with the most distinct words; then with the most words; then the
    first."""
    best, best_span = (0, 0), (0, 0)
    inside: Counter[str] = Counter()
    first = 0
    for last, match in enumerate(matches):
        inside[match.stem] += 1
        while match.end - matches[first].start > length and first < last:
            inside[matches[first].stem] -= 1
            inside += Counter()
            first += 1
        score = (len(inside), last - first + 1)
        if score > best:
            best, best_span = score, (matches[first].start, match.end)
    return best_span


def _window(text: str, span: tuple[int, int], length: int) -> tuple[int, int]:
    """Text around the span, which is in the middle. Words at the edges are not cut in half."""
    spare = length - (span[1] - span[0])
    start = max(0, min(span[0] - spare // 2, len(text) - length))
    end = min(len(text), start + length)
    whole_start, whole_end = start, end
    while 0 < whole_start < span[0] and not text[whole_start - 1].isspace():
        whole_start += 1
    while span[1] < whole_end < len(text) and not text[whole_end].isspace():
        whole_end -= 1
    # Text without any space is cut at the window.
    return (whole_start, whole_end) if text[whole_start:whole_end].strip() else (start, end)


def _highlighted(text: str, matches: Sequence[_Match], start: int, end: int) -> str:
    pieces = []
    position = start
    for first, last in _runs(text, matches):
        is_bold = text[first - 2 : first] == "**" == text[last : last + 2]
        asterisks = "" if is_bold else "**"
        pieces += [text[position:first], asterisks, text[first:last], asterisks]
        position = last
    return "".join([*pieces, text[position:end]])


def _runs(text: str, matches: Sequence[_Match]) -> list[tuple[int, int]]:
    """Overlapping matches, and matches that are parts of one name (`RAG_SERVER_URL`), are joined."""
    runs: list[tuple[int, int]] = []
    for match in matches:
        if runs and (match.start <= runs[-1][1] or _WITHIN_A_NAME.fullmatch(text[runs[-1][1] : match.start])):
            runs[-1] = (runs[-1][0], match.end)
        else:
            runs.append((match.start, match.end))
    return runs
