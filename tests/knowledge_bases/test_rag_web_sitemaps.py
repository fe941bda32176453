from __future__ import annotations

import gzip
import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.knowledge_bases.rag.web import sitemaps
from ai_platform_engineering.knowledge_bases.rag.web.sitemaps import (
    Sitemap,
    SitemapEntry,
    SitemapError,
    parse_sitemap,
)

SPACE = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
)
PAGES = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {SPACE}>
  <url><loc> https://example.com/a?b=1&amp;c=2 </loc><lastmod>2026-11-16T12:00:00+02:00</lastmod>
    <image:image><image:loc>https://example.com/picture.png</image:loc></image:image></url>
  <url><loc>https://example.com/b</loc><lastmod>2026-11</lastmod><priority>0.5</priority></url>
  <url><lastmod>2026</lastmod></url>
  <url><loc>https://example.com/c</loc><lastmod>yesterday</lastmod></url>
</urlset>""".encode()
INDEX = b"<sitemapindex><sitemap><loc>https://example.com/one.xml.gz</loc></sitemap></sitemapindex>"
BOMB = b"""<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>
<urlset><url><loc>&b;</loc></url></urlset>"""
OUTSIDE = b"""<!DOCTYPE b [<!ENTITY a SYSTEM "file:///etc/passwd">]><urlset><url><loc>&a;</loc></url></urlset>"""


def test_pages_and_their_times() -> None:
    for content in (PAGES, gzip.compress(PAGES)):
        assert parse_sitemap(content, "it") == Sitemap(
            pages=(
                SitemapEntry("https://example.com/a?b=1&c=2", datetime(2026, 11, 16, 10, tzinfo=UTC)),
                SitemapEntry("https://example.com/b", datetime(2026, 11, 1, tzinfo=UTC)),
                SitemapEntry("https://example.com/c"),
            )
        )


def test_sitemaps_of_sitemaps() -> None:
    assert parse_sitemap(INDEX, "it") == Sitemap(sitemaps=(SitemapEntry("https://example.com/one.xml.gz"),))


@pytest.mark.parametrize("content", [BOMB, OUTSIDE])
def test_entities_are_not_expanded(content: bytes) -> None:
    with pytest.raises(SitemapError, match="it was not read: it declares a document type"):
        parse_sitemap(content, "it")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        b"<html><body/></html>",
        b"<urlset>",
        PAGES[:200],
        b'<?xml version="1.0" encoding="none"?><urlset/>',
    ],
)
def test_what_is_no_sitemap(content: bytes) -> None:
    with pytest.raises(SitemapError, match="it is not a sitemap"):
        parse_sitemap(content, "it")


def test_what_cannot_be_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SitemapError, match="cannot be decompressed"):
        parse_sitemap(gzip.compress(PAGES)[:-10], "it")
    monkeypatch.setattr(sitemaps, "MAX_BYTES", 1000)
    with pytest.raises(SitemapError, match="larger than 1000 bytes"):
        parse_sitemap(gzip.compress(bytes(1_000_000)), "it")


def test_the_largest_one() -> None:
    entries = b"".join(b"<url><loc>https://example.com/%d</loc></url>" % number for number in range(50_001))
    began = time.process_time()
    found = parse_sitemap(b"<urlset>" + entries + b"</urlset>", "it")
    assert time.process_time() - began < 8
    assert (len(found.pages), found.cut) == (50_000, True)


@given(st.binary() | st.text('<>/urlsetocip&;!" ', max_size=99).map(lambda text: b"<urlset>" + text.encode()))
def test_any_bytes_are_a_sitemap_or_none(content: bytes) -> None:
    try:
        found = parse_sitemap(content, "it")
    except SitemapError:
        return
    assert all(entry.url for entry in (*found.pages, *found.sitemaps))
