"""The assistant panel and the messages tab: a greeting and suggested prompts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError

from ai_platform_engineering.integrations.slack_bot.listeners.context import ListenerContext
from ai_platform_engineering.integrations.slack_bot.listeners.private_notices import describe
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Body, SlackLocation
from ai_platform_engineering.integrations.slack_bot.places import SlackUser
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

GREETING: Final = "Hello. What can I do for you? I plan a request, ask the agents that can help, and show every step."
_MAX_PROMPTS: Final = 4
_TITLE: Final = 75
_EXAMPLES_SECONDS: Final = 5.0


class Assistant:
    def __init__(self, context: ListenerContext) -> None:
        self._context = context

    def listen(self, app: AsyncApp) -> None:
        app.event("assistant_thread_started")(self.on_thread_started)
        # With an agent view, Slack sends no event for a new thread: people open the messages tab.
        app.event("app_home_opened")(self.on_home_opened)

    async def on_thread_started(self, event: Mapping[str, Any], body: Body) -> None:
        thread = event["assistant_thread"]
        if self._context.first_time("event", body.get("event_id")):
            channel, thread_ts = thread["channel_id"], thread["thread_ts"]
            location = SlackLocation(SlackUser(self._context.identity.team, thread["user_id"]), channel, thread_ts)
            self._context.run_later(location, self._greet(channel, thread_ts))

    async def on_home_opened(self, event: Mapping[str, Any], body: Body) -> None:
        if event.get("tab") == "messages" and self._context.first_time("event", body.get("event_id")):
            location = SlackLocation(SlackUser(self._context.identity.team, event["user"]), event["channel"])
            self._context.run_later(location, self._suggest(event["channel"]))

    async def _greet(self, channel: str, thread_ts: str) -> None:
        await self._context.client.chat_postMessage(channel=channel, thread_ts=thread_ts, text=GREETING)
        await self._suggest(channel, thread_ts)

    async def _suggest(self, channel: str, thread_ts: str | None = None) -> None:
        try:
            async with asyncio.timeout(_EXAMPLES_SECONDS):
                examples = await self._context.bot.examples()
        except (ReadableError, TimeoutError):
            return
        prompts = [{"title": example[:_TITLE], "message": example} for example in examples[:_MAX_PROMPTS]]
        if not prompts:
            return
        try:
            await self._context.client.assistant_threads_setSuggestedPrompts(
                channel_id=channel, thread_ts=thread_ts, title="For example", prompts=prompts
            )
        except SlackApiError as error:
            logger.warning("Slack did not accept the suggested prompts: %s", describe(error))
