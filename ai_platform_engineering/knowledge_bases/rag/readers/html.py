"""Reads web pages: their content, without navigation and other elements around it."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urljoin

from bs4 import ParserRejectedMarkup, Tag

from ai_platform_engineering.knowledge_bases.rag.readers.html_content import clear_invisible, content_of, has_text
from ai_platform_engineering.knowledge_bases.rag.readers.html_markdown import heading_of, markdown_of
from ai_platform_engineering.knowledge_bases.rag.readers.html_tree import PageTree
from ai_platform_engineering.knowledge_bases.rag.readers.plain_text import decode
from ai_platform_engineering.knowledge_bases.rag.readers.reading import (
    ExtractedText,
    RawDocument,
    UnreadableDocumentError,
)
from ai_platform_engineering.knowledge_bases.rag.readers.titles import shortened, title_from_name

_CHARSET: Final = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]*encoding=[\"']([\w.:-]+)", re.I
)
_SEARCHED_BYTES: Final = 4096


def read(raw: RawDocument) -> ExtractedText:
    markup = decode(raw, _declared(raw.content))
    page = _tree(markup, raw.name)
    declared_title = _title(page)
    base_url = _base(page, raw.base_url)
    content = content_of(page)
    if not has_text(content):
        content = clear_invisible(_tree(markup, raw.name))
    if not has_text(content):
        raise UnreadableDocumentError(
            f"{raw.name} has no text in it; a page that scripts build in the browser cannot be read."
        )
    title = heading_of(content, "h1") or declared_title or heading_of(content, "h2") or title_from_name(raw.name)
    return ExtractedText(shortened(title), markdown_of(content, base_url))


def _tree(markup: str, name: str) -> PageTree:
    # Beautiful Soup warns if text without a tag looks like a file name.
    try:
        return PageTree(markup if "<" in markup else f"<p>{markup}</p>")
    except ParserRejectedMarkup:
        raise UnreadableDocumentError(f"{name} is not HTML that can be read: its markup is broken.") from None


def _declared(content: bytes) -> str | None:
    found = _CHARSET.search(content, 0, _SEARCHED_BYTES)
    return (found[1] or found[2]).decode("ascii", "replace") if found else None


def _title(page: Tag) -> str | None:
    # SVG drawings have titles as well.
    title = next((title for title in page.find_all("title") if title.find_parent("svg") is None), None)
    return " ".join(title.get_text().split()) or None if title is not None else None


def _base(page: Tag, base_url: str | None) -> str | None:
    """The base of relative links. A <base> tag of the page overrides its URL."""
    base = page.find("base", href=True)
    href = base.get("href") if base is not None else None
    if base_url is None or not isinstance(href, str):
        return base_url
    try:
        return urljoin(base_url, href)
    except ValueError:
        return base_url
