"""Parses sitemaps and sitemap indexes."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped] # it has no types
from defusedxml.ElementTree import iterparse  # type: ignore[import-untyped] # it has no types

from ai_platform_engineering.knowledge_bases.rag.web.bodies import DecompressionError, TooLargeError, decompress
from ai_platform_engineering.utils.errors import ReadableError

MAX_BYTES: Final = 50 * 1024 * 1024
"""Of one file, also after decompression. The sitemap protocol allows no more."""
MAX_ENTRIES: Final = 50_000
_GZIP: Final = b"\x1f\x8b"


class SitemapError(ReadableError):
    """A file is not a sitemap: which one, and why."""


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    url: str
    updated: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """A sitemap lists `pages`, a sitemap index lists `sitemaps`. `cut` if there were more than `MAX_ENTRIES`."""

    pages: tuple[SitemapEntry, ...] = ()
    sitemaps: tuple[SitemapEntry, ...] = ()
    cut: bool = False


def parse_sitemap(content: bytes, name: str) -> Sitemap:
    """Takes seconds for the largest files. `name` is used in errors."""
    try:
        return _parse(decompress(content, MAX_BYTES) if content.startswith(_GZIP) else content)
    except (TooLargeError, DecompressionError):
        raise SitemapError(f"{name} cannot be decompressed, or is larger than {MAX_BYTES} bytes after it.") from None
    except DefusedXmlException:
        raise SitemapError(f"{name} was not read: it declares a document type, which sitemaps do not have.") from None
    except (ParseError, ValueError, LookupError):
        raise SitemapError(f"{name} is not a sitemap: it is not XML.") from None


def _parse(content: bytes) -> Sitemap:
    pages: list[SitemapEntry] = []
    sitemaps: list[SitemapEntry] = []
    root: Element | None = None
    for event, element in iterparse(io.BytesIO(content), events=("start", "end"), forbid_dtd=True):
        if event == "start":
            root = element if root is None else root
            continue
        found = {"url": pages, "sitemap": sitemaps}.get(_local(element))
        if found is None or root is None:
            continue
        if len(found) == MAX_ENTRIES:
            return Sitemap(tuple(pages), tuple(sitemaps), cut=True)
        if (entry := _entry(element)) is not None:
            found.append(entry)
        root.clear()
    if root is None or _local(root) not in ("urlset", "sitemapindex"):
        raise ValueError
    return Sitemap(tuple(pages), tuple(sitemaps))


def _entry(element: Element) -> SitemapEntry | None:
    values = {_local(child): (child.text or "").strip() for child in element}
    return SitemapEntry(values["loc"], _time(values.get("lastmod", ""))) if values.get("loc") else None


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _time(text: str) -> datetime | None:
    """A W3C date or time: `2026-11`, `2026-11-16`, `2026-11-16T10:00Z`."""
    full = {4: f"{text}-01-01", 7: f"{text}-01"}.get(len(text), text)
    try:
        time = datetime.fromisoformat(full)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
