"""Buttons: stop, retry and rating below a message, and Slack's own stop button."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from slack_bolt.async_app import AsyncAck, AsyncApp

from ai_platform_engineering.integrations.slack_bot.actions import RATE, RETRY, STOP, read_value
from ai_platform_engineering.integrations.slack_bot.listeners.context import ListenerContext
from ai_platform_engineering.integrations.slack_bot.listeners.rating_reason import THANKS, reason_view
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Body, SlackLocation, location_of
from ai_platform_engineering.integrations.slack_bot.listeners.texts import STOP_SENTENCES
from ai_platform_engineering.integrations.slack_bot.places import SlackUser
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Rating, Retry, Stop

_RATING_SECONDS: Final = 0.5
UNREADABLE: Final = "I no longer know which request this button belongs to. Please ask again instead."


class Buttons:
    def __init__(self, context: ListenerContext) -> None:
        self._context = context

    def listen(self, app: AsyncApp) -> None:
        for action_id in (STOP, RETRY, RATE):
            app.action(action_id)(self.on_button)

    async def on_button(self, ack: AsyncAck, body: Body, action: Mapping[str, Any]) -> None:
        await ack()
        location = location_of(body, self._context.identity.team)
        trigger: str = body.get("trigger_id") or ""
        if self._context.first_time("pressed", trigger):
            self._context.run_later(location, self._do(action.get("value"), location, trigger))

    async def _do(self, value: object, location: SlackLocation, trigger: str) -> str | None:
        bot, pressed = self._context.bot, read_value(value)
        match pressed and pressed.footer:
            case Stop(task_id=task_id):
                return STOP_SENTENCES[await bot.cancel(task_id, location.person)]
            case Retry(task_id=task_id):
                return await bot.retry(task_id, location.person)
            case Rating() as rating if pressed and pressed.good:
                await bot.rate(rating, location.person, good=True)
                return THANKS
            case Rating() as rating:
                await self._ask_why(rating, location, trigger)
                return None
            case _:
                return UNREADABLE

    async def _ask_why(self, rating: Rating, location: SlackLocation, trigger: str) -> None:
        # The rating counts also when the person closes the modal, and it is stored before the reason. The modal does
        # not wait long for that: the trigger expires after three seconds.
        rated = asyncio.create_task(self._context.bot.rate(rating, location.person, good=False))
        await asyncio.wait({rated}, timeout=_RATING_SECONDS)
        try:
            await self._context.client.views_open(trigger_id=trigger, view=reason_view(rating, location))
        finally:
            await rated


class Sessions:
    """Slack's own stop button, which Slack shows while the bot works in a thread."""

    def __init__(self, context: ListenerContext) -> None:
        self._context = context

    def listen(self, app: AsyncApp) -> None:
        app.event("agent_session_stopped")(self.on_session_stopped)

    async def on_session_stopped(self, event: Mapping[str, Any], body: Body) -> None:
        if not self._context.first_time("event", body.get("event_id")):
            return
        person = SlackUser(self._context.identity.team, event["user"])
        location = SlackLocation(person, event["channel"], event["thread_ts"])
        self._context.run_later(location, self._stop(location))

    async def _stop(self, location: SlackLocation) -> str | None:
        """Stop the runs of the thread. Only a failure is reported here; the thread shows a successful stop."""
        bot = self._context.bot
        runs = bot.running_in(location.channel, location.thread_ts)
        outcomes = [await bot.cancel_run(run.id, location.person) for run in runs]
        return STOP_SENTENCES["not_stopped"] if "not_stopped" in outcomes else None
