"""Slack's Web API for listeners, who do not know of threads: within the budget that all threads share.

It raises as slack_sdk does. What people see twice if it is done twice is not tried again unless Slack has refused it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Final

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from ai_platform_engineering.integrations.slack_bot.clock import Clock
from ai_platform_engineering.integrations.slack_bot.web_api.budget import LIMITS, Budget
from ai_platform_engineering.integrations.slack_bot.web_api.outcomes import TooMany, outcome_of_error

_TRIES: Final = 3


class PacedClient(AsyncWebClient):
    """The same client, which waits for its turn, and where Slack says that it was too much, as long as Slack says."""

    def __init__(self, client: AsyncWebClient, budget: Budget, clock: Clock) -> None:
        super().__init__(
            token=client.token,
            base_url=client.base_url,
            session=client.session,
            logger=client.logger,
            retry_handlers=[],
        )
        self._budget = budget
        self._clock = clock
        self._numbers = count()

    async def api_call(self, api_method: str, **arguments: Any) -> AsyncSlackResponse:
        holder = f"listener/{next(self._numbers)}"
        for tries_left in reversed(range(_TRIES)):
            await self._turn(api_method, _channel(arguments), holder)
            try:
                return await super().api_call(api_method, **arguments)
            except SlackApiError as error:
                outcome = outcome_of_error(error)
                if not isinstance(outcome, TooMany) or not tries_left:
                    raise
            await self._told_to_wait(api_method, outcome.seconds)
        raise AssertionError("the last try returns or raises")

    async def _turn(self, method: str, channel: str, holder: str) -> None:
        """Somebody has done something, and waits to see what comes of it: that is urgent."""
        while method in LIMITS and (wait := self._budget.wait(method, channel, holder, urgent=True)):
            await self._clock.sleep(wait)

    async def _told_to_wait(self, method: str, seconds: float) -> None:
        if method in LIMITS:
            self._budget.hold(method, seconds)
        else:
            await self._clock.sleep(seconds)


def _channel(arguments: Mapping[str, Any]) -> str:
    content = arguments.get("json") or arguments.get("params") or arguments.get("data") or {}
    return str(content.get("channel") or content.get("channel_id") or "")
