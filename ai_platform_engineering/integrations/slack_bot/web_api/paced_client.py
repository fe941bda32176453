"""The Web API client for listeners, within the rate budget that all threads share.

It raises slack_sdk's exceptions. It retries rate-limited calls only, because any other retry could post twice.
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
from ai_platform_engineering.integrations.slack_bot.web_api.outcomes import RateLimited, outcome_of_error

_TRIES: Final = 3


class PacedClient(AsyncWebClient):
    """Waits for the rate budget before each call, and for Slack's `Retry-After` after a rate limit."""

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
        self._holder_ids = count()

    async def api_call(self, api_method: str, **arguments: Any) -> AsyncSlackResponse:
        holder = f"listener/{next(self._holder_ids)}"
        for tries_left in reversed(range(_TRIES)):
            await self._acquire(api_method, _channel(arguments), holder)
            try:
                return await super().api_call(api_method, **arguments)
            except SlackApiError as error:
                outcome = outcome_of_error(error)
                if not isinstance(outcome, RateLimited) or not tries_left:
                    raise
            await self._back_off(api_method, outcome.seconds)
        raise AssertionError("the last try returns or raises")

    async def _acquire(self, method: str, channel: str, holder: str) -> None:
        """Wait for the budget. A person waits for the reaction to an action, so the call is urgent."""
        while method in LIMITS and (wait := self._budget.wait(method, channel, holder, urgent=True)):
            await self._clock.sleep(wait)

    async def _back_off(self, method: str, seconds: float) -> None:
        if method in LIMITS:
            self._budget.hold(method, seconds)
        else:
            await self._clock.sleep(seconds)


def _channel(arguments: Mapping[str, Any]) -> str:
    content = arguments.get("json") or arguments.get("params") or arguments.get("data") or {}
    return str(content.get("channel") or content.get("channel_id") or "")
