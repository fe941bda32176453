"""Requests to remember something, to list what is remembered, and to forget it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.offline_model import answers
from ai_platform_engineering.offline_model.english import lexical
from ai_platform_engineering.offline_model.messages.conversation import ParsedConversation, ToolUse
from ai_platform_engineering.offline_model.messages.tools import (
    FORGET_TOOL,
    LIST_MEMORIES_TOOL,
    MEMORY_TOOLS,
    REMEMBER_TOOL,
    BoundTool,
    ModelReply,
    PlannedCall,
)

_POLITE: Final = r"^\W*(?:(?:please|can\s+you|could\s+you)\s+)*"
_REMEMBER: Final = re.compile(
    rf"{_POLITE}remember(?:\s+that\s+|\s+this:?\s+|:\s*|\s+(?=(?:my|i|i'm|we|our)\b))(?P<text>\S.*?)\s*$", re.I | re.S
)
_LIST: Final = re.compile(
    rf"{_POLITE}(?:what\s+(?:do|did|can)\s+you\s+remember|what\s+have\s+you\s+remembered"
    r"|(?:list|show)(?:\s+me)?(?:\s+all)?(?:\s+of)?(?:\s+my)?\s+memories)\b",
    re.I,
)
_FORGET: Final = re.compile(
    rf"{_POLITE}forget\s+(?!it\b|what\b)(?:that\s+|about\s+|the\s+memory\s+)?(?P<text>\S.*?)\W*$", re.I | re.S
)
_LINE: Final = re.compile(r"^- \[(?P<id>[0-9a-f]+)\] (?P<text>.*) \(\d{4}-\d\d-\d\d\)$", re.M)
_EVERYTHING: Final = frozenset({"everything", "all", "all of it", "all memories", "everything about me"})
_MIN_MATCH: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Listed:
    id: str
    text: str


def reply(conversation: ParsedConversation, tools: Sequence[BoundTool]) -> ModelReply | None:
    """The reply, if memories can be used and the request is about them."""
    if not {tool.name for tool in tools} >= MEMORY_TOOLS:
        return None
    if uses := [use for use in conversation.current.uses if use.name in MEMORY_TOOLS]:
        return ModelReply(answers.with_signature("\n\n".join(map(_outcome, uses))))
    question = conversation.current.question
    if match := _REMEMBER.match(question):
        return ModelReply("", (PlannedCall(REMEMBER_TOOL, {"text": match["text"]}),))
    if _LIST.match(question):
        return ModelReply("", (PlannedCall(LIST_MEMORIES_TOOL, {}),))
    if match := _FORGET.match(question):
        return _forget(match["text"], _listed(conversation.instructions))
    return None


def _forget(wanted: str, listed: Sequence[_Listed]) -> ModelReply:
    found = listed if wanted.lower() in _EVERYTHING else _best_match(wanted, listed)
    if not found:
        return ModelReply(answers.with_signature("I remember nothing like that, so there is nothing to forget."))
    return ModelReply("", tuple(PlannedCall(FORGET_TOOL, {"id": memory.id}) for memory in found))


def _best_match(wanted: str, listed: Sequence[_Listed]) -> Sequence[_Listed]:
    """The memory with this id, or the one that has most of the words; none if all have less than half of them."""
    words = {*lexical.stems(wanted)}
    shares = [
        1.0 if memory.id == wanted else len(words & {*lexical.stems(memory.text)}) / max(1, len(words))
        for memory in listed
    ]
    best = max(shares, default=0.0)
    return [listed[shares.index(best)]] if best >= _MIN_MATCH else []


def _listed(text: str) -> list[_Listed]:
    return [_Listed(match["id"], match["text"]) for match in _LINE.finditer(text)]


def _outcome(use: ToolUse) -> str:
    result = use.result or ""
    if use.failed:
        return result
    if use.name == REMEMBER_TOOL:
        return f"I will remember: {use.arguments.get('text', '')}"
    if use.name == FORGET_TOOL:
        return f"I have forgotten: {result.removeprefix('Forgotten: ')}"
    listed = _listed(result)
    if not listed:
        return "I remember nothing that you asked me to remember."
    return "\n".join(["You asked me to remember:", "", *(f"- {memory.text}" for memory in listed)])
