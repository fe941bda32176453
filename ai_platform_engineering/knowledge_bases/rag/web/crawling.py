"""The web as a source of documents: a page and those below it, or the pages that a sitemap lists."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Final

import httpx

from ai_platform_engineering.knowledge_bases.rag.readers.reading import media_type_of
from ai_platform_engineering.knowledge_bases.rag.source import Absent, Item, Loaded, Unchanged
from ai_platform_engineering.knowledge_bases.rag.stores.store import Known
from ai_platform_engineering.knowledge_bases.rag.web.client import Gone, NotModified, Page
from ai_platform_engineering.knowledge_bases.rag.web.links import Links, links_of
from ai_platform_engineering.knowledge_bases.rag.web.site import Site
from ai_platform_engineering.knowledge_bases.rag.web.sitemaps import (
    MAX_BYTES,
    Entry,
    Sitemap,
    SitemapError,
    parse_sitemap,
)
from ai_platform_engineering.knowledge_bases.rag.web.transport import FetchError
from ai_platform_engineering.knowledge_bases.rag.web.urls import AddressError, page_url, shown
from ai_platform_engineering.knowledge_bases.rag.web.visiting import DisallowedError, Visitor

MAX_SITEMAPS: Final = 500


class SiteSource:
    """The page at `url`, and with a `depth` also those it links to below its own path, so many steps away.

    A page whose links are needed is read when it is listed. One at the last step is read when it is loaded, and then
    only if it has changed.
    """

    def __init__(self, visitor: Visitor, url: str, datasource: str, depth: int = 0) -> None:
        self.datasource = datasource
        self.origin = url
        self.complete = True
        self._start = page_url(url)
        self._site = Site.around(self._start)
        self._depth = depth
        self._most = visitor.policy.max_pages
        self._visitor = visitor
        self._seen = {self._start}
        self._listed: set[httpx.URL] = set()
        self._contents: set[bytes] = set()

    async def items(self) -> AsyncIterator[Item]:
        await self._visitor.check(self._start)
        step, visited = [self._start], 0
        for left in range(self._depth, -1, -1):
            following: list[httpx.URL] = []
            for url in step:
                if url in self._listed:
                    continue
                if visited == self._most:
                    self.complete = False
                    return
                visited += 1
                item = self._unread(url) if left == 0 else await self._read(url, following)
                if item is not None:
                    yield item
            step = following

    def _unread(self, url: httpx.URL) -> Item:
        self._listed.add(url)
        return Item(str(url), partial(self._load, url))

    async def _read(self, url: httpx.URL, following: list[httpx.URL]) -> Item | None:
        """The page, if it is one of the site that was not listed yet; the pages it links to are added to `following`.
        A page that cannot be read now is listed, so that it is told."""
        try:
            found = await self._visitor.visit(url)
        except FetchError as error:
            if url == self._start:
                raise
            return self._unreadable(url, error)
        if not isinstance(found, Page):
            if url == self._start:
                raise _no_page(url)
            return None
        final = page_url(found.url)
        if url == self._start:
            self._site = Site.around(final)
        elif not self._site.holds(final) or not _readable(found):
            return None
        links = await asyncio.to_thread(links_of, found.content) if _is_html(found) else Links(())
        for target in self._site.targets(final, links):
            if target not in self._seen:
                self._seen.add(target)
                following.append(target)
        return self._item(self._site.place(final, links), found)

    def _item(self, place: httpx.URL, page: Page) -> Item | None:
        digest = sha256(page.content).digest()
        if place in self._listed or digest in self._contents:
            return None
        self._seen.add(place)
        self._listed.add(place)
        self._contents.add(digest)

        async def load(known: Known | None) -> Loaded | Unchanged:
            same = known is not None and known.revision is not None and known.revision == page.revision
            return Unchanged() if same else _loaded(page)

        return Item(str(place), load)

    def _unreadable(self, url: httpx.URL, error: FetchError) -> Item | None:
        if isinstance(error, DisallowedError) and not error.temporary:
            return None
        # What it links to stays unknown.
        self.complete = False
        self._listed.add(url)

        async def load(known: Known | None) -> Loaded:
            raise error

        return Item(str(url), load)

    async def _load(self, url: httpx.URL, known: Known | None) -> Loaded | Unchanged | Absent:
        found = await self._visitor.visit(url, known.revision if known else None)
        match found:
            case NotModified():
                return Unchanged()
            case Gone() if url == self._start and known is None:
                raise _no_page(url)
            case Gone():
                return Absent()
            case Page() if url == self._start:
                return _loaded(found)
        final = page_url(found.url)
        links = await asyncio.to_thread(links_of, found.content) if _is_html(found) else Links(())
        place = self._site.place(final, links)
        if not self._site.holds(final) or not _readable(found) or (place != url and place in self._seen):
            return Absent()
        self._seen.add(place)
        return _loaded(found)


class SitemapSource:
    """The pages that the sitemap at `url` lists, or those that it lists do; of its own host, and of the hosts that the
    policy names."""

    def __init__(self, visitor: Visitor, url: str, datasource: str) -> None:
        self.datasource = datasource
        self.origin = url
        self.complete = True
        self._start = page_url(url)
        self._policy = visitor.policy
        self._visitor = visitor
        self._host = self._start.host
        self._seen: set[httpx.URL] = set()
        self._left_out: set[str] = set()

    async def items(self) -> AsyncIterator[Item]:
        async for entry in self._entries():
            url = await self._page(entry)
            if url is None:
                continue
            if len(self._seen) == self._policy.max_pages:
                self.complete = False
                return
            self._seen.add(url)
            yield Item(str(url), partial(self._load, url, entry.updated))
        if not self._seen:
            reasons = "; ".join(sorted(self._left_out)[:3])
            raise FetchError(f"{shown(self._start)} lists no page that can be read{reasons and f': {reasons}'}.")

    async def _entries(self) -> AsyncIterator[Entry]:
        waiting, asked = [self._start], {self._start}
        for count, url in enumerate(waiting):
            if count == MAX_SITEMAPS:
                self.complete = False
                return
            sitemap = await self._sitemap(url)
            self.complete = self.complete and not sitemap.cut
            for entry in sitemap.pages:
                yield entry
            for entry in sitemap.sitemaps:
                further = self._checked(entry)
                if further is not None and further not in asked:
                    asked.add(further)
                    waiting.append(further)

    async def _sitemap(self, url: httpx.URL) -> Sitemap:
        try:
            found = await self._visitor.fetch(url, max_bytes=MAX_BYTES)
            if not isinstance(found, Page):
                raise _no_page(url)
            if url == self._start:
                self._host = page_url(found.url).host
            return await asyncio.to_thread(parse_sitemap, found.content, shown(url))
        except (FetchError, SitemapError) as error:
            if url == self._start:
                raise
            self.complete = False
            self._left_out.add(str(error).rstrip("."))
            return Sitemap()

    async def _page(self, entry: Entry) -> httpx.URL | None:
        url = self._checked(entry)
        if url is None or url in self._seen:
            return None
        try:
            await self._visitor.check(url)
        except DisallowedError as error:
            self.complete = self.complete and not error.temporary
            self._left_out.add(str(error).rstrip("."))
            return None
        return url

    def _checked(self, entry: Entry) -> httpx.URL | None:
        try:
            url = page_url(entry.url)
        except AddressError as error:
            self._left_out.add(str(error).rstrip("."))
            return None
        if url.host == self._host or self._policy.lets_sitemaps_list(url.host):
            return url
        self._left_out.add(f"{url.host} is another host; --allow-host or FETCH_URL_ALLOWED_HOSTS lets it be listed")
        return None

    async def _load(self, url: httpx.URL, updated: datetime | None, known: Known | None) -> Loaded | Unchanged | Absent:
        found = await self._visitor.visit(url, known.revision if known else None)
        match found:
            case NotModified():
                return Unchanged()
            case Gone():
                return Absent()
        final = page_url(found.url)
        if final.host not in (self._host, url.host) and not self._policy.lets_sitemaps_list(final.host):
            raise FetchError(f"{shown(url)} was not read: it redirects to another host, {final.host}.")
        if not _readable(found) or (final != url and final in self._seen):
            return Absent()
        return _loaded(found, updated)


def _loaded(page: Page, updated: datetime | None = None) -> Loaded:
    return Loaded(
        content=page.content,
        media_type=page.media_type,
        name=page.url,
        link=page.url,
        revision=page.revision,
        updated=page.updated or updated,
    )


def _no_page(url: httpx.URL) -> FetchError:
    return FetchError(f"There is no page at {shown(url)}. Check the address.")


def _readable(page: Page) -> bool:
    return page.media_type is None or media_type_of(page.url, page.media_type) is not None


def _is_html(page: Page) -> bool:
    return (media_type_of(page.url, page.media_type) or "text/html").startswith("text/html")
