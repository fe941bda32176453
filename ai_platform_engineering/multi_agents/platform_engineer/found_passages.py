"""Lists the passages that the knowledge base tools returned for a question, with their sources."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import BaseMessage, ToolMessage

from ai_platform_engineering.text.plain_text import one_line

_NOTE: Final = "The model wrote no answer of its own."
_MAX_PASSAGES: Final = 10
_PASSAGE_LENGTH: Final = 400

# A long result is truncated, so its JSON may be incomplete. Each passage before the cut is complete.
_SEARCH_RESULT: Final = re.compile(r'\{"document_id"')
_DOCUMENT: Final = re.compile(
    r"Title: (?P<title>.*)\n(?:Document: .*\n)?Source: (?P<link>.*)\n(?:Updated: .*\n)?\n(?P<text>[\s\S]*)"
)


@dataclass(frozen=True, slots=True)
class _Passage:
    title: str
    text: str
    link: str

    def __str__(self) -> str:
        text = one_line(self.text)
        shown = text if len(text) <= _PASSAGE_LENGTH else f"{text[:_PASSAGE_LENGTH]}…"
        return f"- **{one_line(self.title)}**: {shown}\n  Source: {one_line(self.link)}"


def found_text(messages: Sequence[BaseMessage]) -> str:
    """The answer if the model wrote none: the passages found since the last user message."""
    passages = list(dict.fromkeys(passage for message in _results(messages) for passage in _passages(message)))
    if not passages:
        return f"{_NOTE} Nothing was found in the knowledge base."
    more = len(passages) - _MAX_PASSAGES
    rest = [f"{more} more passages were found."] if more > 0 else []
    return "\n".join([f"{_NOTE} This was found in the knowledge base:\n", *map(str, passages[:_MAX_PASSAGES]), *rest])


def _results(messages: Sequence[BaseMessage]) -> Iterator[str]:
    last = max((place for place, message in enumerate(messages) if message.type == "human"), default=-1)
    for message in messages[last + 1 :]:
        if isinstance(message, ToolMessage) and message.status != "error":
            yield str(message.text)


def _passages(result: str) -> Iterator[_Passage]:
    if document := _DOCUMENT.match(result):
        yield _Passage(document["title"], document["text"], document["link"])
    for start in _SEARCH_RESULT.finditer(result):
        with suppress(ValueError, KeyError):
            found, _ = json.JSONDecoder().raw_decode(result, start.start())
            section = found.get("section") or found["title"]
            title = found["title"] if section == found["title"] else f"{found['title']}, {section}"
            yield _Passage(title, found["snippet"], found["link"])
