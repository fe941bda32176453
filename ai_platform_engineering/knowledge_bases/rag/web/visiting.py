"""Visits to pages of others: only where robots.txt allows it, no faster than is polite, later when they are busy."""

from __future__ import annotations

from typing import Final

import httpx

from ai_platform_engineering.knowledge_bases.rag.web.client import Gone, NotModified, Page, WebClient
from ai_platform_engineering.knowledge_bases.rag.web.pace import Pace
from ai_platform_engineering.knowledge_bases.rag.web.robots import Robots
from ai_platform_engineering.knowledge_bases.rag.web.transport import FetchError
from ai_platform_engineering.knowledge_bases.rag.web.urls import page_url, shown

MAX_TRIES: Final = 3
MAX_PAUSE: Final = 60.0
_FIRST_PAUSE: Final = 1.0
_BUSY: Final = (429, 503)


class DisallowedError(FetchError):
    """robots.txt asks programs to stay away; `temporary` where it could not be read."""

    def __init__(self, url: httpx.URL, reason: str, *, temporary: bool) -> None:
        super().__init__(f"{shown(url)} was not read: {reason}.")
        self.temporary = temporary


class Visitor:
    """One for each job, so that a host is asked for its rules once and has one pace."""

    def __init__(self, client: WebClient) -> None:
        self.policy = client.policy
        self._client = client
        self._robots = Robots(client)
        self._pace = Pace(client.policy.pages_per_second)
        self._looked_at: dict[httpx.URL, Page] = {}

    async def check(self, url: httpx.URL) -> None:
        """Raises a DisallowedError for a page that may not be visited."""
        rules = await self._robots.rules(url)
        if reason := rules.refusal(url):
            raise DisallowedError(url, reason.rstrip("."), temporary=rules.problem is not None)

    async def look(self, url: httpx.URL) -> Page | NotModified | Gone:
        """A visit to see what is there. The page is not asked for again when it is visited the next time."""
        found = await self.visit(url)
        if isinstance(found, Page):
            self._looked_at[url] = found
        return found

    async def visit(self, url: httpx.URL, revision: str | None = None) -> Page | NotModified | Gone:
        await self.check(url)
        found = await self.fetch(url, revision, delay=(await self._robots.rules(url)).delay)
        if isinstance(found, Page) and found.url != str(url):
            await self.check(page_url(found.url))
        return found

    async def fetch(
        self, url: httpx.URL, revision: str | None = None, *, delay: float = 0.0, max_bytes: int | None = None
    ) -> Page | NotModified | Gone:
        """Without asking robots.txt."""
        if (seen := self._looked_at.pop(url, None)) is not None:
            return NotModified() if revision is not None and revision == seen.revision else seen
        tries = 1
        while True:
            await self._pace.turn(url.host, delay)
            try:
                return await self._client.fetch(str(url), revision, max_bytes=max_bytes)
            except FetchError as error:
                pause = error.retry_after if error.retry_after is not None else _FIRST_PAUSE * 2 ** (tries - 1)
                if error.status not in _BUSY or tries == MAX_TRIES or pause > MAX_PAUSE:
                    raise
                self._pace.pause(url.host, pause)
            tries += 1
