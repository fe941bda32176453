"""What every listener has at hand."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.channels import Channels
from ai_platform_engineering.integrations.slack_bot.clock import Clock, SystemClock
from ai_platform_engineering.integrations.slack_bot.listeners.background import Background
from ai_platform_engineering.integrations.slack_bot.listeners.calls import BotCalls
from ai_platform_engineering.integrations.slack_bot.listeners.ephemeral import post_ephemeral
from ai_platform_engineering.integrations.slack_bot.listeners.identity import Identity
from ai_platform_engineering.integrations.slack_bot.listeners.requests import SlackLocation
from ai_platform_engineering.integrations.slack_bot.listeners.trouble import trouble
from ai_platform_engineering.integrations.slack_bot.store import BotStore


@dataclass(frozen=True, slots=True)
class Listening:
    bot: BotCalls
    store: BotStore
    channels: Channels
    client: AsyncWebClient
    identity: Identity
    command: str
    clock: Clock = field(default_factory=SystemClock)
    background: Background = field(default_factory=Background)

    def first_time(self, kind: str, request_id: str | None) -> bool:
        """Whether this was not heard before: Slack sends some things twice. What has no id is always new."""
        return not request_id or self.store.first_time(f"{kind}/{request_id}", self.clock.now())

    def later(self, location: SlackLocation, work: Coroutine[Any, Any, str | None]) -> None:
        """Do this after Slack has had its answer, and tell the person the sentence that comes of it, if there is one,
        or what went wrong."""
        self.background.start(self._tell(location, work))

    async def _tell(self, location: SlackLocation, work: Coroutine[Any, Any, str | None]) -> None:
        try:
            sentence = await work
        except Exception as error:
            sentence = trouble(error)
        if sentence:
            await post_ephemeral(self.client, location, sentence)
