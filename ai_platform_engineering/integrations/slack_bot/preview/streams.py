"""Applies the chunks of a stream to the parts of a message. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.messages import Part, PlanPart, TaskCard, TextPart, parts_of

Parts = tuple[Part, ...]


def streamed(parts: Parts, arguments: Mapping[str, Any], *, one_plan: bool) -> Parts:
    """The parts after a call with `chunks` or `markdown_text`. With `one_plan`, all tasks are cards of one plan at the
    position of the first task; else each task is a card at its own position."""
    parts = _with_text(parts, arguments.get("markdown_text") or "")
    for chunk in arguments.get("chunks") or ():
        parts = _with_chunk(parts, chunk, one_plan=one_plan)
    return parts


def _with_chunk(parts: Parts, chunk: Mapping[str, Any], *, one_plan: bool) -> Parts:
    match chunk.get("type"):
        case "markdown_text":
            return _with_text(parts, chunk.get("text", ""))
        case "task_update":
            return _with_task(parts, chunk, one_plan=one_plan)
        case "plan_update":
            return _with_title(parts, chunk.get("title", "")) if one_plan else parts
        case "blocks":
            return (*parts, *parts_of(chunk.get("blocks", ())))
        case _:
            return parts


def _with_text(parts: Parts, text: str) -> Parts:
    match parts:
        case _ if not text:
            return parts
        case (*before, TextPart(text=written)):
            return (*before, TextPart(written + text))
        case _:
            return (*parts, TextPart(text))


def _with_title(parts: Parts, title: str) -> Parts:
    if not any(isinstance(part, PlanPart) for part in parts):
        return (*parts, PlanPart(title))
    return tuple(replace(part, title=title) if isinstance(part, PlanPart) else part for part in parts)


def _with_task(parts: Parts, chunk: Mapping[str, Any], *, one_plan: bool) -> Parts:
    task = chunk.get("id", "")
    for index, part in enumerate(parts):
        if isinstance(part, PlanPart) and any(card.id == task for card in part.cards):
            cards = tuple(_changed(card, chunk) if card.id == task else card for card in part.cards)
            return (*parts[:index], replace(part, cards=cards), *parts[index + 1 :])
    card = _changed(TaskCard(task, ""), chunk)
    for index, part in enumerate(parts):
        if isinstance(part, PlanPart) and one_plan:
            return (*parts[:index], replace(part, cards=(*part.cards, card)), *parts[index + 1 :])
    return (*parts, PlanPart(cards=(card,)))


def _changed(card: TaskCard, chunk: Mapping[str, Any]) -> TaskCard:
    """Slack replaces the title and the status of a known task, and appends to its details and output."""
    return replace(
        card,
        title=chunk.get("title") or card.title,
        status=chunk.get("status") or card.status,
        details=card.details + (chunk.get("details") or ""),
        output=card.output + (chunk.get("output") or ""),
    )
