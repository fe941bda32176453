"""Search hits and documents of the knowledge base, parsed from the results of its tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ai_platform_engineering.offline_model.messages.conversation import ToolUse
from ai_platform_engineering.offline_model.messages.tools import READ_TOOL, SEARCH_TOOL

_MAX_READ = 100_000
_TRUNCATED = "[Output truncated]"
_LIMIT_NOTICES = ("[Document already retrieved]", "[Search already done]")
_RESULTS = re.compile(r'"results"\s*:\s*\[')
_STRING_FIELD = re.compile(r'"(?P<name>\w+)"\s*:\s*"(?P<value>(?:[^"\\]|\\.)*)')
_HEADER = re.compile(r"^(?P<name>Title|Document|Source|Updated): ?(?P<value>.*)$")


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One search hit: a section of a document. `snippet` is plain text, with `…` where it was cut."""

    document_id: str
    title: str
    section: str
    link: str
    snippet: str
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class KnowledgeSearch:
    """A search with its hits. `problem` is the reason why it failed."""

    query: str
    hits: tuple[SearchHit, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class FetchedDocument:
    """A document that was read: its text as Markdown, possibly truncated by the tool."""

    document_id: str
    title: str
    link: str
    text: str
    is_cut: bool = False
    """Whether the text is incomplete."""


def searches(uses: Sequence[ToolUse]) -> list[KnowledgeSearch]:
    """All searches of the knowledge base, in order, without duplicate queries. Searches that the tool refused because
    of its limit are left out."""
    by_query: dict[str, KnowledgeSearch] = {}
    for use in uses:
        if use.name == SEARCH_TOOL and (search := _parse_search(use)) is not None:
            existing = by_query.setdefault(search.query, search)
            if search.hits and not existing.hits:
                by_query[search.query] = search
    return list(by_query.values())


def documents(uses: Sequence[ToolUse]) -> list[FetchedDocument]:
    """All documents that were read, without duplicates."""
    found = [_parse_document(use) for use in uses if use.name == READ_TOOL and use.result and not use.failed]
    return list({document.document_id: document for document in found if document is not None}.values())


def unread(uses: Sequence[ToolUse]) -> list[tuple[str, str]]:
    """Documents that could not be read, with the reason."""
    return [
        (str(use.arguments.get("document_id", "")), " ".join((use.result or "").split()))
        for use in uses
        if use.name == READ_TOOL and use.failed
    ]


def was_consulted(uses: Sequence[ToolUse]) -> bool:
    """Whether the knowledge base was used. Other tools may be called `search`, so the result format is checked."""
    return any(use.name == READ_TOOL for use in uses) or any(
        use.name == SEARCH_TOOL and not use.failed and _RESULTS.search(use.result or "") for use in uses
    )


def _parse_search(use: ToolUse) -> KnowledgeSearch | None:
    query = str(use.arguments.get("query", ""))
    result = (use.result or "").strip()[:_MAX_READ]
    if result.startswith(_LIMIT_NOTICES):
        return None
    if use.failed:
        return KnowledgeSearch(query, problem=" ".join(result.split()) or "no reason was given.")
    return KnowledgeSearch(query, tuple(_parse_hits(result)))


def _parse_hits(text: str) -> Iterator[SearchHit]:
    """The hits in a text that may be truncated: complete ones, and the readable fields of the last one."""
    opening = _RESULTS.search(text)
    if opening is None:
        return
    decoder = json.JSONDecoder()
    position = opening.end()
    while (position := _next_object(text, position)) >= 0:
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            partial = {match["name"]: _unescaped(match["value"]) for match in _STRING_FIELD.finditer(text, position)}
            yield from _parse_hit(partial)
            return
        if isinstance(value, dict):
            yield from _parse_hit(value)


def _next_object(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n,":
        position += 1
    return position if position < len(text) and text[position] == "{" else -1


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text.rstrip("\\")


def _parse_hit(value: Mapping[str, Any]) -> Iterator[SearchHit]:
    identifier = value.get("document_id")
    if not isinstance(identifier, str) or not identifier:
        return
    score = value.get("score")
    yield SearchHit(
        identifier,
        _string(value, "title") or identifier,
        _string(value, "section"),
        _string(value, "link") or identifier,
        _string(value, "snippet").removesuffix(_TRUNCATED).replace("**", "").strip(),
        float(score) if isinstance(score, int | float) else 0.0,
    )


def _string(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _parse_document(use: ToolUse) -> FetchedDocument | None:
    result = (use.result or "").strip()[:_MAX_READ]
    if result.startswith(_LIMIT_NOTICES):
        return None
    head, _, text = result.partition("\n\n")
    headers = {match["name"]: match["value"].strip() for match in map(_HEADER.match, head.splitlines()) if match}
    if not headers:
        text = result
    identifier = headers.get("Document") or str(use.arguments.get("document_id", ""))
    return FetchedDocument(
        identifier,
        headers.get("Title") or identifier,
        headers.get("Source") or identifier,
        _whole_lines(text),
        text.strip().endswith(_TRUNCATED),
    )


def _whole_lines(text: str) -> str:
    """The text of a document. If it is truncated, its last, incomplete line is left out."""
    text = text.strip()
    if not text.endswith(_TRUNCATED):
        return text
    lines = text.removesuffix(_TRUNCATED).rstrip().splitlines()
    return "\n".join(lines[:-1] or lines)
