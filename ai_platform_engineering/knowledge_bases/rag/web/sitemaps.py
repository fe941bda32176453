"""Sitemaps: the pages that a site lists for programs, in one file or in files of files."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped] # it has no types
from defusedxml.ElementTree import iterparse  # type: ignore[import-untyped] # it has no types

from ai_platform_engineering.knowledge_bases.rag.web.bodies import PackedError, TooLargeError, unpack
from ai_platform_engineering.utils.errors import ReadableError

MAX_BYTES: Final = 50 * 1024 * 1024
"""Of one file, also when it is unpacked; no sitemap is allowed to be larger."""
MAX_ENTRIES: Final = 50_000
_GZIP: Final = b"\x1f\x8b"


class SitemapError(ReadableError):
    """Which file is no sitemap, and why."""


@dataclass(frozen=True, slots=True)
class Entry:
    url: str
    updated: datetime | None = None


@dataclass(frozen=True, slots=True)
class Sitemap:
    """`pages` of an ordinary one, `sitemaps` of one that lists others. `cut` where more was listed than is taken."""

    pages: tuple[Entry, ...] = ()
    sitemaps: tuple[Entry, ...] = ()
    cut: bool = False


def parse_sitemap(content: bytes, name: str) -> Sitemap:
    """Takes seconds for the largest ones; `name` is what it is called in an error."""
    try:
        return _parse(unpack(content, MAX_BYTES) if content.startswith(_GZIP) else content)
    except (TooLargeError, PackedError):
        raise SitemapError(f"{name} cannot be unpacked, or is larger than {MAX_BYTES} bytes when it is.") from None
    except DefusedXmlException:
        raise SitemapError(f"{name} was not read: it declares a document type, as no sitemap does.") from None
    except (ParseError, ValueError, LookupError):
        raise SitemapError(f"{name} is not a sitemap: it is not XML.") from None


def _parse(content: bytes) -> Sitemap:
    pages: list[Entry] = []
    sitemaps: list[Entry] = []
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


def _entry(element: Element) -> Entry | None:
    values = {_local(child): (child.text or "").strip() for child in element}
    return Entry(values["loc"], _time(values.get("lastmod", ""))) if values.get("loc") else None


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _time(text: str) -> datetime | None:
    """A W3C time: `2026-11`, `2026-11-16`, `2026-11-16T10:00Z`."""
    full = {4: f"{text}-01-01", 7: f"{text}-01"}.get(len(text), text)
    try:
        time = datetime.fromisoformat(full)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
