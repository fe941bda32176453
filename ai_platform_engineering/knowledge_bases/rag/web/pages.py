"""One page of the web, as text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ai_platform_engineering.knowledge_bases.rag.readers.reading import media_type_of
from ai_platform_engineering.knowledge_bases.rag.web.apart import Apart
from ai_platform_engineering.knowledge_bases.rag.web.client import Page, WebClient
from ai_platform_engineering.knowledge_bases.rag.web.transport import FetchError
from ai_platform_engineering.knowledge_bases.rag.web.urls import shown


@dataclass(frozen=True, slots=True)
class ReadPage:
    """`url` is where it was found in the end, `text` is Markdown."""

    url: str
    title: str
    text: str
    updated: datetime | None = None


async def read_page(client: WebClient, apart: Apart, url: str) -> ReadPage:
    """Raises a FetchError where there is no page, an UnreadableError where there is no text in it."""
    page = await client.fetch(url)
    if not isinstance(page, Page):
        raise FetchError(f"There is no page at {shown(url)}. Check the address.")
    media_type = media_type_of(page.url, page.media_type) or page.media_type or "text/html"
    reading = await apart.read(page.content, media_type, page.url, page.url)
    return ReadPage(page.url, reading.title, reading.text, page.updated)
