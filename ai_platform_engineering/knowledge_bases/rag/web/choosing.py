"""Which kind of source an address is: a sitemap, or a page and what is below it."""

from __future__ import annotations

from typing import Final, Literal

from ai_platform_engineering.knowledge_bases.rag.ingest.source import Source
from ai_platform_engineering.knowledge_bases.rag.web.client import Page, WebClient
from ai_platform_engineering.knowledge_bases.rag.web.crawling import SitemapSource, SiteSource
from ai_platform_engineering.knowledge_bases.rag.web.sitemaps import MOST_BYTES, is_sitemap
from ai_platform_engineering.knowledge_bases.rag.web.urls import page_url

WebKind = Literal["page", "sitemap"]

_SITEMAP_SUFFIXES: Final = (".xml", ".xml.gz")


async def web_source(client: WebClient, url: str, kind: WebKind | None, datasource: str, depth: int = 0) -> Source:
    """The source at `url`; where no `kind` is named, an address that ends like a sitemap is looked at."""
    if kind is None:
        kind = "sitemap" if await _holds_sitemap(client, url) else "page"
    return SitemapSource(client, url, datasource) if kind == "sitemap" else SiteSource(client, url, datasource, depth)


async def _holds_sitemap(client: WebClient, url: str) -> bool:
    if not page_url(url).path.lower().endswith(_SITEMAP_SUFFIXES):
        return False
    found = await client.fetch(url, max_bytes=MOST_BYTES)
    return isinstance(found, Page) and is_sitemap(found.content)
