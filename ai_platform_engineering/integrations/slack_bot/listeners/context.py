"""The dependencies that all listeners share, and the tasks that run after a request was acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.channels import Channels
from ai_platform_engineering.integrations.slack_bot.clock import Clock, SystemClock
from ai_platform_engineering.integrations.slack_bot.listeners.bot_calls import BotCalls
from ai_platform_engineering.integrations.slack_bot.listeners.errors import error_sentence
from ai_platform_engineering.integrations.slack_bot.listeners.private_notices import post_ephemeral
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Identity, SlackLocation
from ai_platform_engineering.integrations.slack_bot.store import BotStore


class BackgroundTasks:
    """The background tasks of one bot; holds references, so that running tasks are not garbage-collected."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self, seconds: float) -> None:
        """Wait for the tasks, and cancel those that are still running after `seconds`."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in (left := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class ListenerContext:
    bot: BotCalls
    store: BotStore
    channels: Channels
    client: AsyncWebClient
    identity: Identity
    command: str
    clock: Clock = field(default_factory=SystemClock)
    background: BackgroundTasks = field(default_factory=BackgroundTasks)

    def first_time(self, kind: str, request_id: str | None) -> bool:
        """Whether this request is new: Slack sends some requests twice. A request without an id is always new."""
        return not request_id or self.store.first_time(f"{kind}/{request_id}", self.clock.now())

    def run_later(self, location: SlackLocation, work: Coroutine[Any, Any, str | None]) -> None:
        """Run `work` after the acknowledgement, and show its sentence or its error to the person."""
        self.background.start(self._run(location, work))

    async def _run(self, location: SlackLocation, work: Coroutine[Any, Any, str | None]) -> None:
        try:
            sentence = await work
        except Exception as error:
            sentence = error_sentence(error)
        if sentence:
            await post_ephemeral(self.client, location, sentence)
