"""Common parts of Slack's requests: the bot's identity, and the person and location of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ai_platform_engineering.integrations.slack_bot.places import SlackUser

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Identity:
    """The bot in its workspace, from `auth.test`. People mention `user`; the bot's messages also have `bot`."""

    team: str
    team_name: str
    user: str
    bot: str


@dataclass(frozen=True, slots=True)
class SlackLocation:
    """The place for a private notice to a person. `response_url` also works in channels without the bot, but not in
    threads."""

    person: SlackUser
    channel: str = ""
    thread_ts: str = ""
    response_url: str = ""


def person_of(body: Body, team: str) -> SlackUser:
    """The person who sent the request; `team` is the default if the request names no team."""
    user = body.get("user")
    if isinstance(user, Mapping):
        return SlackUser(user.get("team_id") or (body.get("team") or {}).get("id") or team, user["id"])
    return SlackUser(body.get("user_team") or body.get("team_id") or team, body.get("user_id") or "")


def location_of(body: Body, team: str) -> SlackLocation:
    """The location of a slash command or of a pressed button."""
    if "command" in body:
        return SlackLocation(person_of(body, team), body.get("channel_id", ""), "", body.get("response_url", ""))
    container, message = body.get("container") or {}, body.get("message") or {}
    return SlackLocation(
        person_of(body, team),
        (body.get("channel") or {}).get("id") or container.get("channel_id") or "",
        message.get("thread_ts") or container.get("thread_ts") or "",
        body.get("response_url") or "",
    )
