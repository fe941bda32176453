"""Slack's own button that stops the bot, which Slack shows while the bot works in a thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slack_bolt.async_app import AsyncApp

from ai_platform_engineering.integrations.slack_bot.listeners.listening import Listening
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Body, SlackLocation
from ai_platform_engineering.integrations.slack_bot.listeners.stop_words import STOP_WORDS
from ai_platform_engineering.integrations.slack_bot.places import Person


class Sessions:
    def __init__(self, listening: Listening) -> None:
        self._listening = listening

    def listen(self, app: AsyncApp) -> None:
        app.event("agent_session_stopped")(self.stopped)

    async def stopped(self, event: Mapping[str, Any], body: Body) -> None:
        if not self._listening.first_time("event", body.get("event_id")):
            return
        person = Person(self._listening.identity.team, event["user"])
        location = SlackLocation(person, event["channel"], event["thread_ts"])
        self._listening.later(location, self._stop(location))

    async def _stop(self, location: SlackLocation) -> str | None:
        """The sentence to show if it goes on all the same; what else comes of it is seen in the thread."""
        bot = self._listening.bot
        runs = bot.running_in(location.channel, location.thread_ts)
        outcomes = [await bot.cancel_run(run.id, location.person) for run in runs]
        return STOP_WORDS["not_stopped"] if "not_stopped" in outcomes else None
