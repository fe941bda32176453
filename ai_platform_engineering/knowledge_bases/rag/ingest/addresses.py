"""An address as a source: a page with what is below it, or a sitemap, by looking at what is there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Literal
from urllib.parse import urlsplit

from ai_platform_engineering.knowledge_bases.rag.cutting import Cutter
from ai_platform_engineering.knowledge_bases.rag.ingest.naming import host_name
from ai_platform_engineering.knowledge_bases.rag.source import Source
from ai_platform_engineering.knowledge_bases.rag.web.apart import Apart
from ai_platform_engineering.knowledge_bases.rag.web.client import Page, WebClient
from ai_platform_engineering.knowledge_bases.rag.web.crawling import SitemapSource, SiteSource
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.knowledge_bases.rag.web.urls import page_url
from ai_platform_engineering.knowledge_bases.rag.web.visiting import Visitor

Kind = Literal["page", "sitemap"]

_SITEMAP_SUFFIXES: Final = (".xml", ".xml.gz")
_SITEMAP: Final = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex)[\s>]")
_BEGINNING: Final = 4096


@asynccontextmanager
async def address_source(
    url: str, policy: WebPolicy, datasource: str | None = None, kind: Kind | None = None, depth: int = 0
) -> AsyncIterator[tuple[Source, Cutter]]:
    """The source at an address and what reads its pages, for as long as they are read. Without a `kind` the page is
    looked at."""
    name = datasource or host_name(url)
    async with WebClient(policy) as client, Apart(policy.timeout) as apart:
        visitor = Visitor(client)
        if (kind or await _kind_of(url, visitor)) == "sitemap":
            yield SitemapSource(visitor, url, name), apart.cut
        else:
            yield SiteSource(visitor, url, name, depth), apart.cut


async def _kind_of(url: str, visitor: Visitor) -> Kind:
    if urlsplit(url).path.lower().endswith(_SITEMAP_SUFFIXES):
        return "sitemap"
    found = await visitor.look(page_url(url))
    return "sitemap" if isinstance(found, Page) and _is_sitemap(found.content[:_BEGINNING]) else "page"


def _is_sitemap(beginning: bytes) -> bool:
    return beginning.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<") and bool(_SITEMAP.search(beginning))
