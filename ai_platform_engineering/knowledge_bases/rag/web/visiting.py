"""Polite requests to websites: obeys robots.txt, limits the rate, and retries when a server is busy."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final

import httpx

from ai_platform_engineering.knowledge_bases.rag.web.client import FetchError, Gone, NotModified, WebClient, WebPage
from ai_platform_engineering.knowledge_bases.rag.web.robots import Robots
from ai_platform_engineering.knowledge_bases.rag.web.urls import page_url, shown

MAX_TRIES: Final = 3
MAX_PAUSE: Final = 60.0
_FIRST_PAUSE: Final = 1.0
_BUSY: Final = (429, 503)


class DisallowedError(FetchError):
    """robots.txt does not allow the page. `temporary` if robots.txt could not be read."""

    def __init__(self, url: httpx.URL, reason: str, *, temporary: bool) -> None:
        super().__init__(f"{shown(url)} was not read: {reason}.")
        self.temporary = temporary


class HostRateLimiter:
    """Each caller reserves the next free time slot of a host, so concurrent callers wait for different slots."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1 / per_second
        self._next_slot: dict[str, float] = {}

    async def wait(self, host: str, delay: float = 0.0) -> None:
        """`delay` is the time between two requests that the host itself demands."""
        now = monotonic()
        slot = max(now, self._next_slot.get(host, 0.0))
        self._next_slot[host] = slot + max(self._interval, delay)
        if slot > now:
            await asyncio.sleep(slot - now)

    def pause(self, host: str, seconds: float) -> None:
        """Delay all later requests to the host."""
        self._next_slot[host] = max(self._next_slot.get(host, 0.0), monotonic() + seconds)


class Visitor:
    """Use one for each job: it fetches robots.txt of a host once and has one rate limit."""

    def __init__(self, client: WebClient) -> None:
        self.policy = client.policy
        self._client = client
        self._robots = Robots(client)
        self._rate_limiter = HostRateLimiter(client.policy.pages_per_second)
        self._probed: dict[httpx.URL, WebPage] = {}

    async def check(self, url: httpx.URL) -> None:
        """Raises a `DisallowedError` if robots.txt does not allow the page."""
        rules = await self._robots.rules(url)
        if reason := rules.refusal(url):
            raise DisallowedError(url, reason.rstrip("."), temporary=rules.problem is not None)

    async def probe(self, url: httpx.URL) -> WebPage | NotModified | Gone:
        """Fetch a page to see what it is. The next visit uses this response."""
        found = await self.visit(url)
        if isinstance(found, WebPage):
            self._probed[url] = found
        return found

    async def visit(self, url: httpx.URL, revision: str | None = None) -> WebPage | NotModified | Gone:
        await self.check(url)
        found = await self.fetch(url, revision, delay=(await self._robots.rules(url)).delay)
        if isinstance(found, WebPage) and found.url != str(url):
            await self.check(page_url(found.url))
        return found

    async def fetch(
        self, url: httpx.URL, revision: str | None = None, *, delay: float = 0.0, max_bytes: int | None = None
    ) -> WebPage | NotModified | Gone:
        """Without a check of robots.txt."""
        if (seen := self._probed.pop(url, None)) is not None:
            return NotModified() if revision is not None and revision == seen.revision else seen
        tries = 1
        while True:
            await self._rate_limiter.wait(url.host, delay)
            try:
                return await self._client.fetch(str(url), revision, max_bytes=max_bytes)
            except FetchError as error:
                pause = error.retry_after if error.retry_after is not None else _FIRST_PAUSE * 2 ** (tries - 1)
                if error.status not in _BUSY or tries == MAX_TRIES or pause > MAX_PAUSE:
                    raise
                self._rate_limiter.pause(url.host, pause)
            tries += 1
