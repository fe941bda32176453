"""What a search of the knowledge base and the reading of its documents returned, read from the texts of the tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ai_platform_engineering.offline_model.conversation import Use
from ai_platform_engineering.offline_model.tools import READ_TOOL, SEARCH_TOOL

_MAX_READ = 100_000
_TRUNCATED = "[Output truncated]"
_CAPPED = ("[Document already retrieved]", "[Search already done]")
_RESULTS = re.compile(r'"results"\s*:\s*\[')
_PAIR = re.compile(r'"(?P<name>\w+)"\s*:\s*"(?P<value>(?:[^"\\]|\\.)*)')
_HEADER = re.compile(r"^(?P<name>Title|Document|Source|Updated): ?(?P<value>.*)$")


@dataclass(frozen=True, slots=True)
class Place:
    """One result of a search: a place in a document. `snippet` is plain text, with `…` where it was cut."""

    document_id: str
    title: str
    section: str
    link: str
    snippet: str
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Search:
    """A search that was made. `problem`: why it could not be."""

    query: str
    places: tuple[Place, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document that was read: its text as Markdown, up to where the tool cut it."""

    document_id: str
    title: str
    link: str
    text: str
    is_cut: bool = False
    """Whether there is more of it than was read."""


def searches(uses: Sequence[Use]) -> list[Search]:
    """All searches of the knowledge base, in order, each query once. One that was refused because enough was searched
    is none."""
    made: dict[str, Search] = {}
    for use in uses:
        if use.name == SEARCH_TOOL and (search := _search(use)) is not None:
            known = made.setdefault(search.query, search)
            if search.places and not known.places:
                made[search.query] = search
    return list(made.values())


def documents(uses: Sequence[Use]) -> list[ReadDocument]:
    """All documents that were read, each once."""
    found = [_document(use) for use in uses if use.name == READ_TOOL and use.result and not use.failed]
    return list({document.document_id: document for document in found if document is not None}.values())


def unread(uses: Sequence[Use]) -> list[tuple[str, str]]:
    """Documents that could not be read, with the reason."""
    return [
        (str(use.arguments.get("document_id", "")), " ".join((use.result or "").split()))
        for use in uses
        if use.name == READ_TOOL and use.failed
    ]


def was_consulted(uses: Sequence[Use]) -> bool:
    """Whether what was used is the knowledge base: other tools may have the same names."""
    return any(use.name == READ_TOOL for use in uses) or any(
        use.name == SEARCH_TOOL and not use.failed and _RESULTS.search(use.result or "") for use in uses
    )


def _search(use: Use) -> Search | None:
    query = str(use.arguments.get("query", ""))
    result = (use.result or "").strip()[:_MAX_READ]
    if result.startswith(_CAPPED):
        return None
    if use.failed:
        return Search(query, problem=" ".join(result.split()) or "no reason was given.")
    return Search(query, tuple(_places(result)))


def _places(text: str) -> Iterator[Place]:
    """The results in a text that may break off: whole ones, and of the last one what can be read."""
    opening = _RESULTS.search(text)
    if opening is None:
        return
    decoder = json.JSONDecoder()
    position = opening.end()
    while (position := _next_object(text, position)) >= 0:
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            broken = {match["name"]: _unescaped(match["value"]) for match in _PAIR.finditer(text, position)}
            yield from _place(broken)
            return
        if isinstance(value, dict):
            yield from _place(value)


def _next_object(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n,":
        position += 1
    return position if position < len(text) and text[position] == "{" else -1


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text.rstrip("\\")


def _place(value: Mapping[str, Any]) -> Iterator[Place]:
    identifier = value.get("document_id")
    if not isinstance(identifier, str) or not identifier:
        return
    score = value.get("score")
    yield Place(
        identifier,
        _text(value, "title") or identifier,
        _text(value, "section"),
        _text(value, "link") or identifier,
        _text(value, "snippet").removesuffix(_TRUNCATED).replace("**", "").strip(),
        float(score) if isinstance(score, int | float) else 0.0,
    )


def _text(value: Mapping[str, Any], name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _document(use: Use) -> ReadDocument | None:
    result = (use.result or "").strip()[:_MAX_READ]
    if result.startswith(_CAPPED):
        return None
    head, _, text = result.partition("\n\n")
    headers = {match["name"]: match["value"].strip() for match in map(_HEADER.match, head.splitlines()) if match}
    if not headers:
        text = result
    identifier = headers.get("Document") or str(use.arguments.get("document_id", ""))
    return ReadDocument(
        identifier,
        headers.get("Title") or identifier,
        headers.get("Source") or identifier,
        _whole_lines(text),
        text.strip().endswith(_TRUNCATED),
    )


def _whole_lines(text: str) -> str:
    """The text of a document. Where it was cut, the line in which that happened is left out."""
    text = text.strip()
    if not text.endswith(_TRUNCATED):
        return text
    lines = text.removesuffix(_TRUNCATED).rstrip().splitlines()
    return "\n".join(lines[:-1] or lines)
