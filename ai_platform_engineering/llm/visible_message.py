"""A model's message with only the text that people and other models may see.

Thinking in the text is removed. Reasoning blocks stay, as providers require them in the next request. The text of a
refusal becomes content.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage

from ai_platform_engineering.llm.finish_reasons import refusal_text
from ai_platform_engineering.llm.thinking import VisibleText

Block = str | dict[Any, Any]


def visible_message(message: AIMessage) -> AIMessage:
    text, refusal = str(message.text), refusal_text(message)
    if "<" not in text and not refusal:
        return message
    content = message.content
    shown = _visible(content) if "<" in text else content
    if refusal and refusal not in text:
        shown = _with_refusal(shown, refusal)
    return message if shown == content else message.model_copy(update={"content": shown})


def _visible(content: str | list[Block]) -> str | list[Block]:
    filtered = VisibleText()
    if isinstance(content, str):
        shown = filtered.feed(content)
        return shown + filtered.end()
    last = max((place for place, block in enumerate(content) if _text(block) is not None), default=-1)
    blocks: list[Block] = []
    for place, block in enumerate(content):
        if (text := _text(block)) is None:
            blocks.append(block)
            continue
        section = filtered.section
        piece = filtered.feed(text) + (filtered.end() if place == last else "")
        if filtered.section != section:
            blocks = [other for other in blocks if _text(other) is None]
        if piece:
            blocks.append(piece if isinstance(block, str) else {**block, "text": piece})
    return blocks


def _with_refusal(content: str | list[Block], refusal: str) -> str | list[Block]:
    if isinstance(content, str):
        return f"{content}\n\n{refusal}" if content.strip() else refusal
    others = [block for block in content if not (isinstance(block, dict) and block.get("type") == "refusal")]
    written = any((_text(block) or "").strip() for block in others)
    return [*others, {"type": "text", "text": f"\n\n{refusal}" if written else refusal}]


def _text(block: Block) -> str | None:
    if isinstance(block, str):
        return block
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else None
