"""Renders content as chunks of a stream and blocks of a message. Pure, and within Slack's limits.

A text that is too long is truncated as a last resort; callers that must not lose text check `fits` first.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from ai_platform_engineering.integrations.slack_bot.actions import RATE, RETRY, STOP, value_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    Body,
    Card,
    CardStatus,
    Footer,
    Piece,
    Rating,
    Retry,
    Stop,
)

Block = dict[str, Any]

TEXT_LIMIT: Final = 12_000
"""Characters of Markdown in one call."""
FIELD_LIMIT: Final = 256
"""Characters of a card's title or details, or of a plan's title."""
CARD_LIMIT: Final = 50
MESSAGE_LIMIT: Final = 11_900
"""The texts of a message, including button labels, may have 12,000 characters in total. Slack does not document this.
The JSON around the texts seems to count as well, so the size of a plan is that of its JSON."""
_VALUE_LIMIT: Final = 2_000
_FALLBACK_LIMIT: Final = 3_000
"""`chat.update` accepts at most 4,000 characters of escaped plain text."""

_STATUS_EMOJI: Final[Mapping[CardStatus, str]] = {"pending": "◻️", "in_progress": "⏳", "complete": "✅", "error": "❌"}
_MORE: Final = "…"
_GAP: Final = "\n\n"
_UNTITLED: Final = "Plan"


def chunks_of(piece: Piece) -> list[dict[str, Any]]:
    """The chunks that append `piece` to a stream."""
    plan = [{"type": "plan_update", "title": title}] if (title := _truncate(piece.plan or "")) else []
    return [*_markdown_chunk(piece.text), *plan, *map(_task_update, piece.cards), *_markdown_chunk(piece.below)]


def fits(content: Piece | Body) -> bool:
    """Whether all of the text fits."""
    if isinstance(content, Piece):
        return len(content.text) + len(content.below) <= TEXT_LIMIT
    return len(content.text) <= MESSAGE_LIMIT


def message_of(body: Body, without: Collection[str] = ()) -> tuple[str, list[Block]]:
    """The text for notifications, and the blocks: plan, text, footer. `without` are block types that the workspace does
    not support: a plan becomes text, a footer is omitted. Without Markdown blocks there are no blocks at all, and the
    message is `plain_text_of`."""
    if "markdown" in without:
        return _fallback(body), []
    footer = [block for block in footer_blocks(body.footer) if block["type"] not in without]
    forms = (_lines,) if "plan" in without else (_cards, _bare_cards, _lines)
    for form in forms:
        content = form(body)
        if _size(content) <= MESSAGE_LIMIT:
            break
    return _fallback(body), [*content, *footer]


def plain_text_of(body: Body) -> str:
    """The message without blocks: the plan as lines of Markdown, then the text."""
    text = _truncate(body.text, MESSAGE_LIMIT).strip("\n")
    room = MESSAGE_LIMIT - len(text) - len(_GAP)
    title = [f"**{_truncate(body.plan)}**"] if body.plan.strip() else []
    for line in (_detailed_line, _line):
        plan = "\n".join([*title, *map(line, _limited(body.cards))])
        if len(plan) <= room:
            break
    return _GAP.join(part for part in (_truncate(plan, room) if room > 0 else "", text) if part.strip())


def footer_blocks(footer: Footer | None) -> list[Block]:
    """The buttons below a message; none if their values exceed Slack's limit."""
    match footer:
        case Rating():
            good, bad = value_of(footer, good=True), value_of(footer, good=False)
            element: Block = {
                "type": "feedback_buttons",
                "action_id": RATE,
                "positive_button": {"text": _plain("👍"), "accessibility_label": "A good answer", "value": good},
                "negative_button": {"text": _plain("👎"), "accessibility_label": "A bad answer", "value": bad},
            }
            return _footer("context_actions", element, bad)
        case Retry():
            value = value_of(footer)
            return _footer("actions", _button("Try again", RETRY, value), value)
        case Stop():
            value = value_of(footer)
            return _footer("actions", {**_button("Stop", STOP, value), "style": "danger"}, value)
        case None:
            return []


def _footer(kind: str, element: Block, value: str) -> list[Block]:
    return [{"type": kind, "elements": [element]}] if len(value) <= _VALUE_LIMIT else []


def _button(label: str, action_id: str, value: str) -> Block:
    return {"type": "button", "text": _plain(label), "action_id": action_id, "value": value}


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text}


def _markdown_chunk(text: str) -> list[dict[str, Any]]:
    return [{"type": "markdown_text", "text": fitting}] if (fitting := _truncate(text, TEXT_LIMIT)) else []


def _task_update(card: Card) -> dict[str, Any]:
    update = {"type": "task_update", "id": _id(card), "title": _title(card), "status": card.status}
    return {**update, "details": details} if (details := _truncate(card.details)) else update


def _cards(body: Body) -> list[Block]:
    """The plan as a block, and the text."""
    return [*_plan(body), *_markdown(body.text)]


def _bare_cards(body: Body) -> list[Block]:
    return _cards(replace(body, cards=tuple(replace(card, details="") for card in body.cards)))


def _lines(body: Body) -> list[Block]:
    """The plan as lines, which are shorter than a block, and the text."""
    return _markdown(plain_text_of(body))


def _plan(body: Body) -> list[Block]:
    title = _truncate(body.plan) if body.plan.strip() else ""
    if not title and not body.cards:
        return []
    # Slack rejects a plan with duplicate task ids.
    cards = {_id(card): card for card in _limited(body.cards)}
    return [{"type": "plan", "title": title or _UNTITLED, "tasks": list(map(_task_card, cards.values()))}]


def _task_card(card: Card) -> Block:
    block = {"type": "task_card", "task_id": _id(card), "title": _title(card), "status": card.status}
    return {**block, "details": _rich_text(details)} if (details := _truncate(card.details)) else block


def _rich_text(text: str) -> Block:
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [section]}


def _markdown(text: str) -> list[Block]:
    return [{"type": "markdown", "text": _truncate(text, MESSAGE_LIMIT)}] if text.strip() else []


def _line(card: Card) -> str:
    return f"{_STATUS_EMOJI[card.status]} {_on_one_line(_title(card))}"


def _detailed_line(card: Card) -> str:
    return f"{_line(card)}: {details}" if (details := _on_one_line(_truncate(card.details))) else _line(card)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _limited(cards: tuple[Card, ...]) -> Iterable[Card]:
    if len(cards) <= CARD_LIMIT:
        return cards
    left_out = len(cards) - CARD_LIMIT + 1
    return (*cards[: CARD_LIMIT - 1], Card("more", f"{_MORE} and {left_out} more", "pending"))


def _id(card: Card) -> str:
    return _truncate(card.id) or _MORE


def _title(card: Card) -> str:
    return _truncate(card.title) if card.title.strip() else _MORE


def _fallback(body: Body) -> str:
    """The text for notifications and screen readers. Only in this text would Slack expand `<!channel>`."""
    text = next((text for text in (body.text, body.plan, *(card.title for card in body.cards)) if text.strip()), _MORE)
    escaped = text.strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _truncate(escaped, _FALLBACK_LIMIT)


def _truncate(text: str, limit: int = FIELD_LIMIT) -> str:
    """The text with at most `limit` characters, all of them valid in UTF-8."""
    clean = text.encode(errors="replace").decode()
    return clean if len(clean) <= limit else clean[: limit - 1] + _MORE


def _size(blocks: list[Block]) -> int:
    return sum(
        len(block["text"]) if block["type"] == "markdown" else len(json.dumps(block, ensure_ascii=False))
        for block in blocks
    )
