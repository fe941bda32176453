"""Builds the bot from its parts, and sets its write pace from the rate budget."""

from __future__ import annotations

from typing import Final

from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.events import Form
from ai_platform_engineering.integrations.slack_bot.bot import Bot
from ai_platform_engineering.integrations.slack_bot.channels import Channels
from ai_platform_engineering.integrations.slack_bot.clock import Clock, SystemClock
from ai_platform_engineering.integrations.slack_bot.permissions import may_answer
from ai_platform_engineering.integrations.slack_bot.places import SlackUser
from ai_platform_engineering.integrations.slack_bot.store import BotStore, StoredRun
from ai_platform_engineering.integrations.slack_bot.supervisor_link import SupervisorLink
from ai_platform_engineering.integrations.slack_bot.thread import Environment
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import WritePace
from ai_platform_engineering.integrations.slack_bot.web_api.budget import LIMITS, MINUTE, ORDINARY_SHARE, Budget
from ai_platform_engineering.integrations.slack_bot.web_api.delivery import Delivery
from ai_platform_engineering.settings import Settings

CROWDED: Final = 0.3
"""From this used share of a rate budget on, threads write less often, so that the rest lasts for the minute and every
thread keeps getting updates."""


def assemble(
    settings: Settings,
    client: AsyncWebClient,
    store: BotStore,
    channels: Channels,
    clock: Clock | None = None,
    link: SupervisorLink | None = None,
    budget: Budget | None = None,
) -> Bot:
    """The bot; close it before the store. Pass `budget` to share it with other callers of Slack. Raises `SettingsError`
    if the supervisor's settings are invalid."""
    clock = clock or SystemClock()
    budget = budget or Budget(clock)

    def allowed(form: Form, stored: StoredRun, person: SlackUser) -> str | None:
        channel = stored.incoming.place.channel
        return may_answer(form, stored.incoming.person, person, channels.of(channel, direct=channel.startswith("D")))

    environment = Environment(
        store=store,
        delivery=Delivery(client, budget, clock),
        clock=clock,
        link=link or SupervisorLink(settings),
        pace=lambda: pace(budget, bot.streaming, bot.open_threads - bot.streaming),
    )
    bot = Bot(environment, allowed)
    return bot


def pace(budget: Budget, streaming: int, updating: int) -> WritePace:
    """The write pace of a thread, with that many threads streaming and updating."""
    usual = WritePace()
    return WritePace(
        _seconds(budget, "chat.appendStream", streaming, usual.stream),
        _seconds(budget, "chat.update", updating, usual.update),
    )


def _seconds(budget: Budget, method: str, threads: int, usual: float) -> float:
    if budget.pressure(method) < CROWDED:
        return usual
    return max(usual, threads * MINUTE / (LIMITS[method] * (ORDINARY_SHARE - CROWDED)))
