"""A transcript as plain text: what people would read aloud from the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.messages import (
    BlockPart,
    Part,
    PlanPart,
    SlackMessage,
    TextPart,
    rich_text,
)
from ai_platform_engineering.integrations.slack_bot.preview.modals import Modal
from ai_platform_engineering.integrations.slack_bot.preview.workspace import Transcript

STATUS_SYMBOLS = {"pending": "○", "in_progress": "◐", "complete": "✓", "error": "✗"}
Json = Mapping[str, Any]


def plain_transcript(transcript: Transcript, name: Callable[[str], str] = str) -> str:
    """Messages below each other, and the status last. `name` gives the name of a user."""
    said = [plain_message(message, name) for message in transcript.messages]
    if transcript.status:
        said.append(f"… {transcript.status}")
    return "\n\n".join(said)


def plain_message(message: SlackMessage, name: Callable[[str], str] = str) -> str:
    if message.deleted:
        return f"{name(message.author)}: (deleted)"
    head = name(message.author) + (f" (only {name(message.ephemeral_for)} sees it)" if message.ephemeral_for else "")
    lines = [f"{head}:", *(line for part in message.parts for line in plain_part(part).splitlines())]
    lines += [f"📎 {file.title or file.name}" for file in message.files]
    labels = [("▌", message.streaming), ("(cut off)", message.expired), ("(edited)", message.edited)]
    lines += [label for label, there in labels if there]
    return "\n  ".join(lines)


def plain_modal(modal: Modal) -> str:
    blocks = modal.view.get("blocks", ())
    lines = [f"[{modal.title}]"]
    for block in blocks:
        lines += plain_block(block)
        if error := modal.errors.get(block.get("block_id", "")):
            lines.append(f"! {error}")
    buttons = [modal.view.get(key, {}).get("text", "") for key in ("close", "submit")]
    lines.append(" ".join(f"[{label}]" for label in buttons if label))
    return "\n".join(line for line in lines if line)


def plain_part(part: Part) -> str:
    match part:
        case TextPart(text=text):
            return text
        case PlanPart(title=title, cards=cards):
            lines = [title] if title else []
            for card in cards:
                lines.append(f"{STATUS_SYMBOLS.get(card.status, '?')} {card.title}")
                lines += [f"    {line}" for line in (card.details + card.output).splitlines()]
            return "\n".join(lines)
        case BlockPart(json=block):
            return "\n".join(plain_block(block))


def plain_block(block: Json) -> list[str]:
    match block:
        case {"type": "divider"}:
            return ["---"]
        case {"type": "rich_text"}:
            return [rich_text(block)]
        case {"type": "input", "label": {"text": str(label)}, "element": element}:
            return [f"{label}: {_element(element)}"]
        case {"type": "actions" | "context_actions" | "context", "elements": list(elements)}:
            return [" ".join(filter(None, map(_element, elements)))]
        case {"type": "image"}:
            return [f"(picture: {block.get('alt_text', '')})"]
        case _:
            return list(_section(block))


def _section(block: Json) -> Iterator[str]:
    text = block.get("text")
    accessory = _element(block["accessory"]) if "accessory" in block else ""
    if text:
        yield f"{_words(text)} {accessory}".rstrip()
    elif accessory:
        yield accessory
    yield from map(_words, block.get("fields", ()))


def _words(text: object) -> str:
    return str(text["text"]) if isinstance(text, Mapping) else str(text)


def _element(element: Json) -> str:
    match element:
        case {"type": "feedback_buttons", "positive_button": good, "negative_button": bad}:
            return f"[{_words(good['text'])}] [{_words(bad['text'])}]"
        case {"type": "button" | "icon_button" | "workflow_button", "text": label}:
            return f"[{_words(label)}]"
        case {"type": "image"}:
            return f"(picture: {element.get('alt_text', '')})"
        case {"type": "mrkdwn" | "plain_text", "text": str(text)}:
            return text
        case _:
            return _field(element)


def _field(element: Json) -> str:
    """Something to fill in."""
    match element:
        case {"options": list(options)}:
            chosen = _chosen(element)
            return "  ".join(f"{'(x)' if option in chosen else '( )'} {_words(option['text'])}" for option in options)
        case {"initial_value": str(typed)} | {"placeholder": {"text": str(typed)}} if typed:
            return f"[{typed}]"
        case _:
            return "[...]"


def _chosen(element: Json) -> Iterable[object]:
    one = element.get("initial_option")
    return element.get("initial_options") or ([one] if one else [])
