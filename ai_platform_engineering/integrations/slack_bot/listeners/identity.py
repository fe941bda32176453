"""Who the bot is in its workspace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """As Slack says it to whoever has the token. Others mention `user`; its own messages also carry `bot`."""

    team: str
    team_name: str
    user: str
    bot: str
