"""The result of a tool call as one text. Pure functions over MCP content, without a length limit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from ai_platform_engineering.mcp.backend_errors import backend_error, reason_in

NOTHING = "(no output)"
UNEXPLAINED_FAILURE = "The tool failed and did not say why."


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The text of a tool's result, whether the tool failed, and the error message for people."""

    text: str
    failed: bool = False
    reason: str = ""


def tool_answer(
    content: Sequence[ContentBlock],
    structured: Mapping[str, Any] | None,
    *,
    failed: bool = False,
    arguments: Mapping[str, Any] | None = None,
) -> ToolAnswer:
    """The answer to a call with `arguments`. An answer that is only an error of the backend counts as failed."""
    text = text_of(content, structured)
    error = None if failed else backend_error(text, structured, arguments)
    return text_answer(text, failed=failed) if error is None else ToolAnswer(text or error, failed=True, reason=error)


def text_answer(text: str, *, failed: bool = False) -> ToolAnswer:
    """An empty text is replaced by a placeholder."""
    if failed:
        return ToolAnswer(text or UNEXPLAINED_FAILURE, failed=True, reason=reason_in(text) or UNEXPLAINED_FAILURE)
    return ToolAnswer(text or NOTHING)


def text_of(content: Sequence[ContentBlock], structured: Mapping[str, Any] | None) -> str:
    """All blocks in order, each on a new line. Structured content is included only if no block is text."""
    parts = [part for block in content if (part := _text_of_block(block))]
    if structured is not None and not any(_is_text(block) for block in content):
        parts.insert(0, json.dumps(structured, ensure_ascii=False, separators=(",", ":")))
    return "\n".join(parts)


def _text_of_block(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text) | EmbeddedResource(resource=TextResourceContents(text=text)):
            return text
        case ImageContent(mimeType=kind, data=data):
            return f"[image: {kind}, {_size(data)}]"
        case AudioContent(mimeType=kind, data=data):
            return f"[audio: {kind}, {_size(data)}]"
        case EmbeddedResource(resource=BlobResourceContents(uri=uri, mimeType=kind, blob=data)):
            return f"[resource: {uri}, {kind or 'binary'}, {_size(data)}]"
        case ResourceLink():
            about = ", ".join(part for part in (block.title or block.name, block.mimeType, block.description) if part)
            return f"[link: {block.uri}, {about}]"
        case _:
            return f"[{block.type}]"


def _is_text(block: ContentBlock) -> bool:
    match block:
        case TextContent(text=text) | EmbeddedResource(resource=TextResourceContents(text=text)):
            return bool(text)
        case _:
            return False


def _size(base64_text: str) -> str:
    size = len(base64_text) * 3 // 4 - base64_text[-2:].count("=")
    return f"{size} bytes" if size < 1024 else f"{size / 1024:.0f} KiB"
