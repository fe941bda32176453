"""robots.txt: what a host lets programs read, and how fast."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

import httpx
from protego import Protego

from ai_platform_engineering.knowledge_bases.rag.web.client import PRODUCT, Gone, NotModified, Page, WebClient
from ai_platform_engineering.knowledge_bases.rag.web.transport import FetchError

MAX_DELAY: Final = 30.0
"""Seconds between two requests; a host that asks for more gets this."""
_MAX_BYTES: Final = 512 * 1024


@dataclass(frozen=True, slots=True)
class Rules:
    """`problem` says why the rules are not known; then nothing may be read."""

    file: Protego | None = None
    problem: str | None = None

    def refusal(self, url: httpx.URL) -> str | None:
        """Why a page may not be read, or None."""
        if self.problem is not None:
            return f"the robots.txt of {url.host} could not be read, and so nothing there may be: {self.problem}"
        if self.file is not None and not self.file.can_fetch(str(url), PRODUCT):
            return f"the robots.txt of {url.host} asks programs not to"
        return None

    @property
    def delay(self) -> float:
        if self.file is None:
            return 0.0
        rate = self.file.request_rate(PRODUCT)
        between = rate.seconds / rate.requests if rate is not None and rate.requests else 0.0
        return min(max(self.file.crawl_delay(PRODUCT) or 0.0, between), MAX_DELAY)


class Robots:
    """The rules of each host that is visited, asked for once."""

    def __init__(self, client: WebClient) -> None:
        self._client = client
        self._known: dict[httpx.URL, Rules] = {}
        self._asking = asyncio.Lock()

    async def rules(self, url: httpx.URL) -> Rules:
        place = url.copy_with(raw_path=b"/robots.txt")
        async with self._asking:
            if place not in self._known:
                self._known[place] = await self._ask(place)
            return self._known[place]

    async def _ask(self, place: httpx.URL) -> Rules:
        try:
            found = await self._client.fetch(str(place), max_bytes=_MAX_BYTES)
        except FetchError as error:
            # Who answers "not for you" has no rules to show; who cannot answer now may have some.
            refused = error.status is not None and 400 <= error.status < 500 and error.status != 429
            return Rules() if refused else Rules(problem=str(error))
        match found:
            case Page(content=content):
                return Rules(Protego.parse(content.decode("utf-8-sig", "replace")))
            case Gone() | NotModified():
                return Rules()
