"""The source for a URL: a site, or a sitemap, which is detected from its content."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Literal
from urllib.parse import urlsplit

from ai_platform_engineering.knowledge_bases.rag.chunked_text import Chunker
from ai_platform_engineering.knowledge_bases.rag.names import name_of_host
from ai_platform_engineering.knowledge_bases.rag.source import DocumentSource
from ai_platform_engineering.knowledge_bases.rag.web.client import WebClient, WebPage
from ai_platform_engineering.knowledge_bases.rag.web.crawling import SitemapSource, SiteSource
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.knowledge_bases.rag.web.reader_pool import ReaderPool
from ai_platform_engineering.knowledge_bases.rag.web.urls import page_url
from ai_platform_engineering.knowledge_bases.rag.web.visiting import Visitor

Kind = Literal["page", "sitemap"]

_SITEMAP_SUFFIXES: Final = (".xml", ".xml.gz")
_SITEMAP: Final = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex)[\s>]")
_SNIFFED_BYTES: Final = 4096


@asynccontextmanager
async def address_source(
    url: str, policy: WebPolicy, datasource: str | None = None, kind: Kind | None = None, depth: int = 0
) -> AsyncIterator[tuple[DocumentSource, Chunker]]:
    """The source, and the chunker for its pages. Without a `kind`, the page is fetched to detect it."""
    name = datasource or name_of_host(url)
    async with WebClient(policy) as client, ReaderPool(policy.timeout) as readers:
        visitor = Visitor(client)
        if (kind or await _kind_of(url, visitor)) == "sitemap":
            yield SitemapSource(visitor, url, name), readers.chunk
        else:
            yield SiteSource(visitor, url, name, depth), readers.chunk


async def _kind_of(url: str, visitor: Visitor) -> Kind:
    if urlsplit(url).path.lower().endswith(_SITEMAP_SUFFIXES):
        return "sitemap"
    found = await visitor.probe(page_url(url))
    return "sitemap" if isinstance(found, WebPage) and _is_sitemap(found.content[:_SNIFFED_BYTES]) else "page"


def _is_sitemap(beginning: bytes) -> bool:
    return beginning.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<") and bool(_SITEMAP.search(beginning))
