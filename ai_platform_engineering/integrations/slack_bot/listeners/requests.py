"""What interactive requests have in common: who asks, where, and from which message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ai_platform_engineering.integrations.slack_bot.places import Person

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SlackLocation:
    """Where a person can be told something that nobody else sees. `response_url` works in channels, too, in which the
    bot is not, but knows no threads."""

    person: Person
    channel: str = ""
    thread_ts: str = ""
    response_url: str = ""


def person_of(body: Body, team: str) -> Person:
    """Who pressed, submitted or typed the command; `team` where the request does not say which."""
    user = body.get("user")
    if isinstance(user, Mapping):
        return Person(user.get("team_id") or (body.get("team") or {}).get("id") or team, user["id"])
    return Person(body.get("user_team") or body.get("team_id") or team, body.get("user_id") or "")


def location_of(body: Body, team: str) -> SlackLocation:
    """Where to answer a command or a pressed button."""
    if "command" in body:
        return SlackLocation(person_of(body, team), body.get("channel_id", ""), "", body.get("response_url", ""))
    container, message = body.get("container") or {}, body.get("message") or {}
    return SlackLocation(
        person_of(body, team),
        (body.get("channel") or {}).get("id") or container.get("channel_id") or "",
        message.get("thread_ts") or container.get("thread_ts") or "",
        body.get("response_url") or "",
    )
