"""robots.txt: the pages of a host that programs may read, and how fast."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import httpx
from protego import Protego

from ai_platform_engineering.knowledge_bases.rag.web.client import (
    PRODUCT,
    FetchError,
    Gone,
    NotModified,
    WebClient,
    WebPage,
)

MAX_DELAY: Final = 30.0
"""Seconds between two requests. A longer delay in robots.txt is reduced to this."""
_MAX_BYTES: Final = 512 * 1024


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """`problem` is the reason why robots.txt could not be read. Then no page may be read."""

    file: Protego | None = None
    problem: str | None = None

    def refusal(self, url: httpx.URL) -> str | None:
        """The reason why a page may not be read, or None."""
        if self.problem is not None:
            return f"the robots.txt of {url.host} could not be read, so none of its pages may be read: {self.problem}"
        if self.file is not None and not self.file.can_fetch(str(url), PRODUCT):
            return f"the robots.txt of {url.host} disallows it"
        return None

    @property
    def delay(self) -> float:
        if self.file is None:
            return 0.0
        rate = self.file.request_rate(PRODUCT)
        between = rate.seconds / rate.requests if rate is not None and rate.requests else 0.0
        return min(max(self.file.crawl_delay(PRODUCT) or 0.0, between), MAX_DELAY)


class Robots:
    """The rules of each visited host, fetched once."""

    def __init__(self, client: WebClient) -> None:
        self._client = client
        self._known: dict[httpx.URL, RobotsRules] = {}
        self._lock = asyncio.Lock()

    async def rules(self, url: httpx.URL) -> RobotsRules:
        address = url.copy_with(raw_path=b"/robots.txt")
        async with self._lock:
            if address not in self._known:
                self._known[address] = await self._fetch(address)
            return self._known[address]

    async def _fetch(self, address: httpx.URL) -> RobotsRules:
        try:
            found = await self._client.fetch(str(address), max_bytes=_MAX_BYTES)
        except FetchError as error:
            # A client error means that there are no rules. After any other error there may be some.
            refused = error.status is not None and 400 <= error.status < 500 and error.status != 429
            return RobotsRules() if refused else RobotsRules(problem=str(error))
        match found:
            case WebPage(content=content):
                return RobotsRules(Protego.parse(content.decode("utf-8-sig", "readdress")))
            case Gone() | NotModified():
                return RobotsRules()
