"""The bot, put together from its parts."""

from __future__ import annotations

from typing import Final

from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.events import Form
from ai_platform_engineering.integrations.slack_bot.bot import Bot
from ai_platform_engineering.integrations.slack_bot.channels import Channels
from ai_platform_engineering.integrations.slack_bot.clock import Clock, SystemClock
from ai_platform_engineering.integrations.slack_bot.permissions import may_answer
from ai_platform_engineering.integrations.slack_bot.places import Person
from ai_platform_engineering.integrations.slack_bot.store import BotStore, KeptRun
from ai_platform_engineering.integrations.slack_bot.supervisor_link import SupervisorLink
from ai_platform_engineering.integrations.slack_bot.thread import Environment
from ai_platform_engineering.integrations.slack_bot.thread_view.stream_buffer import Pace
from ai_platform_engineering.integrations.slack_bot.web_api.budget import LIMITS, MINUTE, ORDINARY_SHARE, Budget
from ai_platform_engineering.integrations.slack_bot.web_api.delivery import Delivery
from ai_platform_engineering.settings import Settings

CROWDED: Final = 0.3
"""From this share of a budget on, threads take turns instead of writing whenever they have something to say: what is
left of it for them lasts for a minute, so that nobody falls silent."""


def assemble(
    settings: Settings,
    client: AsyncWebClient,
    store: BotStore,
    channels: Channels,
    clock: Clock | None = None,
    link: SupervisorLink | None = None,
    budget: Budget | None = None,
) -> Bot:
    """The bot; `aclose` it before the store. `budget` is for whoever else calls Slack. Raises `SettingsError` where it
    cannot get to the supervisor."""
    clock = clock or SystemClock()
    budget = budget or Budget(clock)

    def allowed(form: Form, kept: KeptRun, person: Person) -> str | None:
        channel = kept.incoming.place.channel
        return may_answer(form, kept.incoming.person, person, channels.of(channel, direct=channel.startswith("D")))

    environment = Environment(
        store=store,
        delivery=Delivery(client, budget, clock),
        clock=clock,
        link=link or SupervisorLink(settings),
        pace=lambda: pace(budget, bot.streaming, bot.open_threads - bot.streaming),
    )
    bot = Bot(environment, allowed)
    return bot


def pace(budget: Budget, streaming: int, updating: int) -> Pace:
    """How often a thread may write now, with so many that do."""
    usual = Pace()
    return Pace(
        _seconds(budget, "chat.appendStream", streaming, usual.stream),
        _seconds(budget, "chat.update", updating, usual.update),
    )


def _seconds(budget: Budget, method: str, threads: int, usual: float) -> float:
    if budget.pressure(method) < CROWDED:
        return usual
    return max(usual, threads * MINUTE / (LIMITS[method] * (ORDINARY_SHARE - CROWDED)))
