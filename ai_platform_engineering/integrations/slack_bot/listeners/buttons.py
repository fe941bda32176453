"""Buttons below a message: stop, try again, thumbs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from slack_bolt.async_app import AsyncAck, AsyncApp

from ai_platform_engineering.integrations.slack_bot.actions import RATE, RETRY, STOP, read_value
from ai_platform_engineering.integrations.slack_bot.listeners.listening import Listening
from ai_platform_engineering.integrations.slack_bot.listeners.reason import THANKS, reason_view
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Body, SlackLocation, location_of
from ai_platform_engineering.integrations.slack_bot.listeners.stop_words import STOP_WORDS
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Rating, Retry, Stop

_RATING_SECONDS: Final = 0.5
UNREADABLE: Final = (
    "This button is from another time, and I do not know any more what it belongs to. Ask again instead."
)


class Buttons:
    def __init__(self, listening: Listening) -> None:
        self._listening = listening

    def listen(self, app: AsyncApp) -> None:
        for action_id in (STOP, RETRY, RATE):
            app.action(action_id)(self.pressed)

    async def pressed(self, ack: AsyncAck, body: Body, action: Mapping[str, Any]) -> None:
        await ack()
        location = location_of(body, self._listening.identity.team)
        trigger: str = body.get("trigger_id") or ""
        if self._listening.first_time("pressed", trigger):
            self._listening.later(location, self._do(action.get("value"), location, trigger))

    async def _do(self, value: object, location: SlackLocation, trigger: str) -> str | None:
        bot, pressed = self._listening.bot, read_value(value)
        match pressed and pressed.footer:
            case Stop(task_id=task_id):
                return STOP_WORDS[await bot.cancel(task_id, location.person)]
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
        # Who closes the form without a word has rated all the same, and that comes before what they say in it; but the
        # trigger is good for three seconds only.
        rated = asyncio.create_task(self._listening.bot.rate(rating, location.person, good=False))
        await asyncio.wait({rated}, timeout=_RATING_SECONDS)
        try:
            await self._listening.client.views_open(trigger_id=trigger, view=reason_view(rating, location))
        finally:
            await rated
