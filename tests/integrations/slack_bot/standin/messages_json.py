"""Messages as Slack hands them out: in answers, events and payloads."""

from __future__ import annotations

from typing import Any

from ai_platform_engineering.integrations.slack_bot.preview.messages import (
    BlockPart,
    Part,
    PlanPart,
    SlackMessage,
    TaskCard,
    TextPart,
)
from tests.integrations.slack_bot.standin.state import State

Json = dict[str, Any]


def message_json(state: State, message: SlackMessage) -> Json:
    """What was sent as Markdown comes back as rich text: a bot cannot compare it with what it has sent."""
    author = state.directory.users.get(message.author)
    blocks = [block for place, part in enumerate(message.parts) for block in _blocks(part, f"{message.ts}-{place}")]
    json: Json = {
        "type": "message",
        "user": message.author,
        "team": state.directory.team_id,
        "ts": message.ts,
        "text": message.notification or mrkdwn(message.text),
        "blocks": blocks,
    }
    if author and author.is_bot:
        json |= {"bot_id": author.bot_id, "app_id": f"A{author.bot_id[1:]}", "bot_profile": _profile(state, message)}
    if message.author == state.directory.app.user_id:
        json["app_id"] = state.directory.app.id
    if message.thread_ts:
        json["thread_ts"] = message.thread_ts
    if message.streamed:
        json["streaming_state"] = "in_progress" if message.streaming else "completed"
    if message.edited:
        json["edited"] = {"user": message.author, "ts": message.ts}
    if message.files:
        json["files"] = [{"id": file.id, "name": file.name, "title": file.title} for file in message.files]
        json["subtype"] = "file_share"
    if metadata := state.metadata.get((message.channel, message.ts)):
        json["metadata"] = metadata
    return json


def mrkdwn(markdown: str) -> str:
    """Roughly what Slack makes of Markdown where it has to write it in its own notation."""
    return markdown.replace("**", "*")


def _profile(state: State, message: SlackMessage) -> Json:
    author = state.directory.users[message.author]
    return {"id": author.bot_id, "name": author.name, "team_id": state.directory.team_id, "deleted": False}


def _blocks(part: Part, block_id: str) -> list[Json]:
    match part:
        case BlockPart(json=json):
            return [dict(json)]
        case TextPart(mrkdwn=True):
            return []
        case TextPart(text=text):
            return [{**_rich_text(text), "block_id": block_id}]
        case PlanPart(title=title, cards=cards):
            return [{"type": "plan", "block_id": block_id, "title": title, "tasks": list(map(_card, cards))}]


def _card(card: TaskCard) -> Json:
    json: Json = {"type": "task_card", "task_id": card.id, "title": card.title, "status": card.status}
    return json | {key: _rich_text(text) for key, text in (("details", card.details), ("output", card.output)) if text}


def _rich_text(text: str) -> Json:
    section = {"type": "rich_text_section", "elements": [{"type": "text", "text": text}]}
    return {"type": "rich_text", "elements": [section]}
