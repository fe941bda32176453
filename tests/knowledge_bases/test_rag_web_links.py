from __future__ import annotations

import time

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.knowledge_bases.rag.web.links import Links, links_of
from ai_platform_engineering.knowledge_bases.rag.web.site import Site

PAGE = b"""<!doctype html><html><head>
<base href="/docs/"><base href="/other/">
<link rel="stylesheet" href="style.css"><link REL='canonical alternate' href='https://example.com/docs/'>
<!-- <a href="commented.html"> -->
<script>document.write('<a href="scripted.html">')</script>
</head><body>
<A HREF="one.html">1</A> <a class="b > c" href='two.html?a=1&amp;b=2'>2</a> <a href=three.html>3</a>
<a\nhref="four.html"\n>4</a> <a data-href="no.html">-</a> <a name=x>-</a> <a href="">-</a> <a href="one.html">1</a>
<area href="five.html"> <abbr href="no.html">-</abbr> <a href="unfinished <a href="six.html">6</a>
<textarea><a href="typed.html"></textarea> <a href="caf\xc3\xa9.html">7</a>
</body></html>"""

FIRST = '<a href="first.html">1</a>'


def test_links_as_they_are_written() -> None:
    assert links_of(PAGE) == Links(
        targets=(*("one.html", "two.html?a=1&b=2", "three.html", "four.html", "five.html", "six.html", "café.html"),),
        canonical="https://example.com/docs/",
        base="/docs/",
    )


@pytest.mark.parametrize(
    "piece",
    [
        *("<a ", "<!--a", "<!-- -->", '<a href="', '<a href="x" ', "<a href='", "<", "<script>", "<script></script>"),
        *("<a href=x>", "href=", "a" * 9, "<a a a a a", "&amp;", '<a b="<"', "<a " + " " * 40, "<textarea", "=\"'"),
    ],
)
def test_time_grows_with_the_size_and_no_faster(piece: str) -> None:
    content = (FIRST + piece * (500_000 // len(piece))).encode()
    began = time.process_time()
    assert links_of(content).targets[0] == "first.html"
    assert time.process_time() - began < 2


@given(st.binary() | st.text("<a href=\"'>!-script/\n &;", max_size=200).map(str.encode))
def test_any_bytes_may_follow_a_link(content: bytes) -> None:
    first, *others = links_of(FIRST.encode() + content).targets
    assert first == "first.html"
    assert all(others)


class TestSites:
    @pytest.mark.parametrize(
        ("start", "inside", "outside"),
        [
            ("/docs/", ["/docs/", "/docs/a/b", "/docs/?a=1", "/docs"], ["/", "/documents/", "/other"]),
            ("/docs", ["/docs", "/docs/", "/docs/a"], ["/documents", "/"]),
            ("/docs/index.html", ["/docs/index.html", "/docs/b.html", "/docs/c/"], ["/other.html", "/"]),
            ("/", ["/", "/a", "/a/b.html"], []),
            ("/start.html", ["/", "/a"], []),
            ("/v1.2/guide", ["/v1.2/guide/x"], ["/v1.2/other"]),
        ],
    )
    def test_what_is_below(self, start: str, inside: list[str], outside: list[str]) -> None:
        site = Site.around(httpx.URL(f"https://example.com{start}"))
        assert [path for path in inside if not site.contains(httpx.URL(f"https://example.com{path}"))] == []
        assert [path for path in outside if site.contains(httpx.URL(f"https://example.com{path}"))] == []
        for other in ("https://www.example.com", "https://example.com:8443", "https://example.com.evil.net"):
            assert not site.contains(httpx.URL(f"{other}{start}"))

    def test_targets_are_pages_of_the_site(self) -> None:
        page = httpx.URL("https://example.com/docs/guide/")
        hrefs = (
            *("a.html", "../b#part", "/docs/c?x=1", "//example.com/docs/d", "http://example.com/docs/e"),
            *("/other", "https://elsewhere.net/docs/", "mailto:me@example.com", "javascript:go()", "picture.PNG"),
            *("archive.tar.gz", "paper.pdf", "http://[", "release-1.2"),
        )
        targets = Site.around(httpx.URL("https://example.com/docs/")).targets(page, Links(hrefs))
        assert [str(url).removeprefix("https://example.com/docs/") for url in targets] == [
            *("guide/a.html", "b", "c?x=1", "d", "e", "guide/paper.pdf", "guide/release-1.2"),
        ]

    def test_targets_start_from_what_the_page_says(self) -> None:
        site = Site.around(httpx.URL("https://example.com/"))
        for base, first in (("/v2/", "https://example.com/v2/a"), ("http://[", "https://example.com/docs/a")):
            links = Links(("a",), base=base)
            assert [str(url) for url in site.targets(httpx.URL("https://example.com/docs/"), links)] == [first]

    @pytest.mark.parametrize(
        ("canonical", "place"),
        [
            (None, "/docs/a?from=home"),
            ("/docs/a", "/docs/a"),
            ("a/", "/docs/a/"),
            ("http://example.com/docs/a/index.html", "/docs/a/index.html"),
            ("/docs/", "/docs/a?from=home"),
            ("https://elsewhere.net/docs/a", "/docs/a?from=home"),
            ("http://[", "/docs/a?from=home"),
        ],
    )
    def test_a_page_says_which_way_to_write_its_address(self, canonical: str | None, place: str) -> None:
        site = Site.around(httpx.URL("https://example.com/docs/"))
        page = httpx.URL("https://example.com/docs/a?from=home")
        assert str(site.canonical_url(page, Links((), canonical))) == f"https://example.com{place}"
