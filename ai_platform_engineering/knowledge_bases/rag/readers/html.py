"""Web pages: their content, without what is around it on every page of a site."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urljoin

from bs4 import ParserRejectedMarkup, Tag

from ai_platform_engineering.knowledge_bases.rag.readers.decoding import decode
from ai_platform_engineering.knowledge_bases.rag.readers.html_content import clear_invisible, content_of, has_text
from ai_platform_engineering.knowledge_bases.rag.readers.html_markdown import heading_of, markdown_of
from ai_platform_engineering.knowledge_bases.rag.readers.html_tree import PageTree
from ai_platform_engineering.knowledge_bases.rag.readers.reading import Raw, Reading, UnreadableError
from ai_platform_engineering.knowledge_bases.rag.readers.titles import shortened, title_from_name

_CHARSET: Final = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]*encoding=[\"']([\w.:-]+)", re.I
)
_NEAR_THE_TOP: Final = 4096


def read(raw: Raw) -> Reading:
    markup = decode(raw, _declared(raw.content))
    page = _tree(markup, raw.name)
    named = _title(page)
    base_url = _base(page, raw.base_url)
    content = content_of(page)
    if not has_text(content):
        content = clear_invisible(_tree(markup, raw.name))
    if not has_text(content):
        raise UnreadableError(f"{raw.name} has no text in it; a page that scripts build in the browser cannot be read.")
    title = heading_of(content, "h1") or named or heading_of(content, "h2") or title_from_name(raw.name)
    return Reading(shortened(title), markdown_of(content, base_url))


def _tree(markup: str, name: str) -> PageTree:
    # Without a tag in it the parser would take a short text for the name of a file, and warn of that.
    try:
        return PageTree(markup if "<" in markup else f"<p>{markup}</p>")
    except ParserRejectedMarkup:
        raise UnreadableError(f"{name} is not HTML that can be read: its markup is broken.") from None


def _declared(content: bytes) -> str | None:
    found = _CHARSET.search(content, 0, _NEAR_THE_TOP)
    return (found[1] or found[2]).decode("ascii", "replace") if found else None


def _title(page: Tag) -> str | None:
    # Drawings have titles as well.
    title = next((title for title in page.find_all("title") if title.find_parent("svg") is None), None)
    return " ".join(title.get_text().split()) or None if title is not None else None


def _base(page: Tag, base_url: str | None) -> str | None:
    """Where relative links start: the page may say so itself."""
    base = page.find("base", href=True)
    href = base.get("href") if base is not None else None
    if base_url is None or not isinstance(href, str):
        return base_url
    try:
        return urljoin(base_url, href)
    except ValueError:
        return base_url
