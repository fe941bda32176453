"""Display names of people, requested from Slack once and cached."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from aiohttp import ClientError
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

_TIMEOUT_SECONDS: Final = 1.0
_MAX_LOOKUPS: Final = 5
_CACHE_SIZE: Final = 10_000


class DisplayNames:
    """Names are optional: after a timeout or an error, the id is used instead."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._known: dict[str, str] = {}

    async def of(self, users: Iterable[str]) -> dict[str, str]:
        """The known names by user id."""
        wanted = sorted(users)
        unknown = [user for user in wanted if user not in self._known][:_MAX_LOOKUPS]
        if unknown:
            if len(self._known) > _CACHE_SIZE:
                self._known.clear()
            try:
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    await asyncio.gather(*map(self._look_up, unknown))
            except TimeoutError:
                pass
        return {user: name for user in wanted if (name := self._known.get(user))}

    async def _look_up(self, user: str) -> None:
        try:
            found = (await self._client.users_info(user=user))["user"]
        except (SlackClientError, ClientError, OSError):
            return
        profile = found.get("profile") or {}
        self._known[user] = profile.get("display_name") or found.get("real_name") or found.get("name") or ""
