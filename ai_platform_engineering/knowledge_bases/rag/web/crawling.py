"""Websites as sources: a page and the pages below it, or the pages of a sitemap."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Final

import httpx

from ai_platform_engineering.knowledge_bases.rag.readers.reading import media_type_of
from ai_platform_engineering.knowledge_bases.rag.source import Absent, Item, LoadedItem, Unchanged
from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion
from ai_platform_engineering.knowledge_bases.rag.web.client import FetchError, Gone, NotModified, WebPage
from ai_platform_engineering.knowledge_bases.rag.web.links import Links, links_of
from ai_platform_engineering.knowledge_bases.rag.web.site import Site
from ai_platform_engineering.knowledge_bases.rag.web.sitemaps import (
    MAX_BYTES,
    Sitemap,
    SitemapEntry,
    SitemapError,
    parse_sitemap,
)
from ai_platform_engineering.knowledge_bases.rag.web.urls import AddressError, page_url, shown
from ai_platform_engineering.knowledge_bases.rag.web.visiting import DisallowedError, Visitor

MAX_SITEMAPS: Final = 500


class SiteSource:
    """The page at `url`, and the pages below its path that are at most `depth` links away.

    A page whose links are needed is fetched when it is listed. A page at the last level is fetched when it is loaded,
    and only if it has changed.
    """

    def __init__(self, visitor: Visitor, url: str, datasource: str, depth: int = 0) -> None:
        self.datasource = datasource
        self.origin = url
        self.complete = True
        self._start = page_url(url)
        self._site = Site.around(self._start)
        self._depth = depth
        self._max_pages = visitor.policy.max_pages
        self._visitor = visitor
        self._seen = {self._start}
        self._listed: set[httpx.URL] = set()
        self._contents: set[bytes] = set()

    async def items(self) -> AsyncIterator[Item]:
        await self._visitor.check(self._start)
        level, visited = [self._start], 0
        for left in range(self._depth, -1, -1):
            following: list[httpx.URL] = []
            for url in level:
                if url in self._listed:
                    continue
                if visited == self._max_pages:
                    self.complete = False
                    return
                visited += 1
                item = self._unfetched(url) if left == 0 else await self._fetch(url, following)
                if item is not None:
                    yield item
            level = following

    def _unfetched(self, url: httpx.URL) -> Item:
        self._listed.add(url)
        return Item(str(url), partial(self._load, url))

    async def _fetch(self, url: httpx.URL, following: list[httpx.URL]) -> Item | None:
        """The page, if it belongs to the site and was not listed yet. Its links are added to `following`. A page that
        cannot be fetched is listed as well, so that the report names it."""
        try:
            found = await self._visitor.visit(url)
        except FetchError as error:
            if url == self._start:
                raise
            return self._unreadable(url, error)
        if not isinstance(found, WebPage):
            if url == self._start:
                raise _no_page(url)
            return None
        final = page_url(found.url)
        if url == self._start:
            self._site = Site.around(final)
        elif not self._site.contains(final) or not _readable(found):
            return None
        links = await asyncio.to_thread(links_of, found.content) if _is_html(found) else Links(())
        for target in self._site.targets(final, links):
            if target not in self._seen:
                self._seen.add(target)
                following.append(target)
        return self._item(self._site.canonical_url(final, links), found)

    def _item(self, canonical: httpx.URL, page: WebPage) -> Item | None:
        digest = sha256(page.content).digest()
        if canonical in self._listed or digest in self._contents:
            return None
        self._seen.add(canonical)
        self._listed.add(canonical)
        self._contents.add(digest)

        async def load(stored: DocumentVersion | None) -> LoadedItem | Unchanged:
            same = stored is not None and stored.revision is not None and stored.revision == page.revision
            return Unchanged() if same else _loaded(page)

        return Item(str(canonical), load)

    def _unreadable(self, url: httpx.URL, error: FetchError) -> Item | None:
        if isinstance(error, DisallowedError) and not error.temporary:
            return None
        # Its links are unknown, so the listing is incomplete.
        self.complete = False
        self._listed.add(url)

        async def load(stored: DocumentVersion | None) -> LoadedItem:
            raise error

        return Item(str(url), load)

    async def _load(self, url: httpx.URL, stored: DocumentVersion | None) -> LoadedItem | Unchanged | Absent:
        found = await self._visitor.visit(url, stored.revision if stored else None)
        match found:
            case NotModified():
                return Unchanged()
            case Gone() if url == self._start and stored is None:
                raise _no_page(url)
            case Gone():
                return Absent()
            case WebPage() if url == self._start:
                return _loaded(found)
        final = page_url(found.url)
        links = await asyncio.to_thread(links_of, found.content) if _is_html(found) else Links(())
        canonical = self._site.canonical_url(final, links)
        if not self._site.contains(final) or not _readable(found) or (canonical != url and canonical in self._seen):
            return Absent()
        self._seen.add(canonical)
        return _loaded(found)


class SitemapSource:
    """The pages in the sitemap at `url`, and in the sitemaps that it lists. Only pages of its own host and of the hosts
    in the policy are read."""

    def __init__(self, visitor: Visitor, url: str, datasource: str) -> None:
        self.datasource = datasource
        self.origin = url
        self.complete = True
        self._start = page_url(url)
        self._policy = visitor.policy
        self._visitor = visitor
        self._host = self._start.host
        self._seen: set[httpx.URL] = set()
        self._skipped: set[str] = set()

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
            reasons = "; ".join(sorted(self._skipped)[:3])
            raise FetchError(f"{shown(self._start)} lists no page that can be read{reasons and f': {reasons}'}.")

    async def _entries(self) -> AsyncIterator[SitemapEntry]:
        queue, queued = [self._start], {self._start}
        for count, url in enumerate(queue):
            if count == MAX_SITEMAPS:
                self.complete = False
                return
            sitemap = await self._sitemap(url)
            self.complete = self.complete and not sitemap.cut
            for entry in sitemap.pages:
                yield entry
            for entry in sitemap.sitemaps:
                further = self._checked(entry)
                if further is not None and further not in queued:
                    queued.add(further)
                    queue.append(further)

    async def _sitemap(self, url: httpx.URL) -> Sitemap:
        try:
            found = await self._visitor.fetch(url, max_bytes=MAX_BYTES)
            if not isinstance(found, WebPage):
                raise _no_page(url)
            if url == self._start:
                self._host = page_url(found.url).host
            return await asyncio.to_thread(parse_sitemap, found.content, shown(url))
        except (FetchError, SitemapError) as error:
            if url == self._start:
                raise
            self.complete = False
            self._skipped.add(str(error).rstrip("."))
            return Sitemap()

    async def _page(self, entry: SitemapEntry) -> httpx.URL | None:
        url = self._checked(entry)
        if url is None or url in self._seen:
            return None
        try:
            await self._visitor.check(url)
        except DisallowedError as error:
            self.complete = self.complete and not error.temporary
            self._skipped.add(str(error).rstrip("."))
            return None
        return url

    def _checked(self, entry: SitemapEntry) -> httpx.URL | None:
        try:
            url = page_url(entry.url)
        except AddressError as error:
            self._skipped.add(str(error).rstrip("."))
            return None
        if url.host == self._host or self._policy.lets_sitemaps_list(url.host):
            return url
        self._skipped.add(f"{url.host} is another host; --allow-host or FETCH_URL_ALLOWED_HOSTS lets it be listed")
        return None

    async def _load(
        self, url: httpx.URL, updated: datetime | None, stored: DocumentVersion | None
    ) -> LoadedItem | Unchanged | Absent:
        found = await self._visitor.visit(url, stored.revision if stored else None)
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


def _loaded(page: WebPage, updated: datetime | None = None) -> LoadedItem:
    return LoadedItem(
        content=page.content,
        media_type=page.media_type,
        name=page.url,
        link=page.url,
        revision=page.revision,
        updated=page.updated or updated,
    )


def _no_page(url: httpx.URL) -> FetchError:
    return FetchError(f"There is no page at {shown(url)}. Check the address.")


def _readable(page: WebPage) -> bool:
    return page.media_type is None or media_type_of(page.url, page.media_type) is not None


def _is_html(page: WebPage) -> bool:
    return (media_type_of(page.url, page.media_type) or "text/html").startswith("text/html")
