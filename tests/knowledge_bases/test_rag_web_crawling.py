from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ai_platform_engineering.knowledge_bases.rag.documents import document_id
from ai_platform_engineering.knowledge_bases.rag.ingest.engine import ingest
from ai_platform_engineering.knowledge_bases.rag.ingest.report import IngestReport
from ai_platform_engineering.knowledge_bases.rag.source import Absent, DocumentSource, LoadedItem, Unchanged
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion
from ai_platform_engineering.knowledge_bases.rag.web import visiting
from ai_platform_engineering.knowledge_bases.rag.web.client import FetchError, WebClient
from ai_platform_engineering.knowledge_bases.rag.web.crawling import SitemapSource, SiteSource
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.knowledge_bases.rag.web.sitemaps import SitemapError
from ai_platform_engineering.knowledge_bases.rag.web.visiting import Visitor
from ai_platform_engineering.utils.errors import ReadableError
from tests.knowledge_bases.websites import Answer, Asked, Served, Website, redirect, unchanging, website

FAST = WebPolicy(allow_private=True, timeout=60, pages_per_second=1000)

Found = dict[str, LoadedItem | Unchanged | Absent | str]


async def crawl(source: DocumentSource, known: Mapping[str, DocumentVersion] | None = None) -> Found:
    """What a source lists and what comes of it, by path; a failure is its sentence."""
    found: Found = {}
    async for item in source.items():
        assert item.path not in found
        try:
            found[item.path] = await item.load((known or {}).get(item.path))
        except ReadableError as error:
            found[item.path] = str(error)
    return found


async def crawl_site(
    site: Website,
    path: str = "/",
    depth: int = 1,
    policy: WebPolicy = FAST,
    known: Mapping[str, DocumentVersion] | None = None,
) -> tuple[dict[str, LoadedItem | Unchanged | Absent | str], bool]:
    async with WebClient(policy) as client:
        source = SiteSource(Visitor(client), site.url(path), "site", depth)
        found = await crawl(source, known)
        return {path.removeprefix(site.url("")): result for path, result in found.items()}, source.complete


async def crawl_sitemap(site: Website, path: str = "/sitemap.xml", policy: WebPolicy = FAST) -> tuple[Found, bool]:
    async with WebClient(policy) as client:
        source = SitemapSource(Visitor(client), site.url(path), "site")
        found = await crawl(source)
        return {path.removeprefix(site.url("")): result for path, result in found.items()}, source.complete


def loaded(found: Found) -> list[str]:
    return [path for path, result in found.items() if isinstance(result, LoadedItem)]


def linking(*targets: str, text: str = "") -> str:
    return f"<p>{text or targets}</p>" + "".join(f'<a href="{target}">x</a>' for target in targets)


def sitemap(*pages: str) -> str:
    return f"<urlset>{''.join(f'<url><loc>{page}</loc></url>' for page in pages)}</urlset>"


def sitemap_of(*sitemaps: str) -> str:
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{each}</loc></sitemap>' for each in sitemaps)}</sitemapindex>"


class TestSites:
    async def test_one_page(self) -> None:
        headers = {"last-modified": "Mon, 16 Nov 2026 10:00:00 GMT", "content-type": "text/html"}
        async with website({"/a": Answer(linking("/b").encode(), headers=headers)}) as site:
            found, complete = await crawl_site(site, "/a", depth=0)
        assert found == {
            "/a": LoadedItem(
                content=linking("/b").encode(),
                media_type="text/html",
                name=site.url("/a"),
                link=site.url("/a"),
                revision="modified Mon, 16 Nov 2026 10:00:00 GMT",
                updated=datetime(2026, 11, 16, 10, tzinfo=UTC),
            )
        }
        assert complete
        assert site.paths == ["/robots.txt", "/a"]

    async def test_pages_below_it_as_far_as_wanted(self) -> None:
        pages: dict[str, Served] = {
            "/docs/": linking("one", "two/", "/docs/#top", "/about", "http://elsewhere.invalid/docs/"),
            "/docs/one": linking("two/", "three"),
            "/docs/two/": linking("../three", "four"),
            "/docs/three": linking("five"),
            "/docs/two/four": linking("/docs/"),
            "/docs/five": "never",
        }
        async with website(pages) as site:
            expected = {0: ["/docs/"], 1: ["one", "two/"], 2: ["three", "two/four"], 3: ["five"]}
            wanted: list[str] = []
            for depth, more in expected.items():
                wanted += [f"/docs/{path.removeprefix('/docs/')}" for path in more]
                site.asked.clear()
                found, complete = await crawl_site(site, "/docs/", depth)
                assert (loaded(found), complete) == (wanted, True)
                assert sorted(site.paths) == sorted(["/robots.txt", *wanted])

    async def test_a_page_has_one_address(self) -> None:
        same = '<link rel="canonical" href="/a"><p>same</p>' + linking("/b")
        pages: dict[str, Served] = {
            "/": linking("/a?from=home", "/a", "/a#part", "/%61", "/moved", "//LOCALHOST:{port}/a", "/copy1", "/copy2"),
            "/a?from=home": same,
            "/a": same,
            "/moved": redirect("/b"),
            "/b": linking("/c", text="b"),
            "/c": "leaf",
            "/copy1": "copied",
            "/copy2": "copied",
        }
        async with website(pages) as site:
            for depth in (2, 3):
                found, _ = await crawl_site(site, depth=depth)
                assert sorted(loaded(found)) == ["/", "/a", "/b", "/c", "/copy1"]

    async def test_at_the_last_step_too(self) -> None:
        pages: dict[str, Served] = {
            "/": linking("/a", "/a?from=home", "/old", "/b", "/out", "/picture"),
            "/a": '<link rel="canonical" href="/a"><p>same</p>',
            "/a?from=home": '<link rel="canonical" href="/a"><p>same</p>',
            "/old": redirect("/b"),
            "/b": "b",
            "/out": redirect("http://localhost:1/"),
            "/picture": Answer(b"\x89PNG", headers={"content-type": "image/png"}),
        }
        async with website(pages) as site, website({"/": "other"}) as other:
            site.pages["/out"] = redirect(other.url())
            found, complete = await crawl_site(site)
        assert loaded(found) == ["/", "/a", "/b"]
        assert [path for path, result in found.items() if result == Absent()] == [
            "/a?from=home",
            "/old",
            "/out",
            "/picture",
        ]
        assert complete

    async def test_a_start_that_moved(self) -> None:
        pages: dict[str, Served] = {
            "/docs": redirect("/v2/docs/"),
            "/v2/docs/": linking("a", "/docs/b"),
            "/v2/docs/a": "a",
        }
        async with website(pages) as site:
            found, _ = await crawl_site(site, "/docs")
        assert loaded(found) == ["/v2/docs/", "/v2/docs/a"]

    async def test_what_has_not_changed(self) -> None:
        pages: dict[str, Served] = {"/": unchanging(linking("/a", "/b")), "/a": unchanging("a"), "/b": unchanging("b")}
        async with website(pages) as site:
            first, _ = await crawl_site(site)
            known = {
                site.url(path): DocumentVersion("print", result.revision)
                for path, result in first.items()
                if isinstance(result, LoadedItem)
            }
            site.pages["/b"] = unchanging("changed", '"two"')
            second, _ = await crawl_site(site, known=known)
            assert second["/"] == second["/a"] == Unchanged()
            assert loaded(second) == ["/b"]
            # The start is read for its links, the last step only if it changed.
            conditions = [asked.headers.get("if-none-match") for asked in site.asked[-3:]]
            assert conditions == [None, '"one"', '"one"']

    async def test_robots_are_obeyed(self) -> None:
        pages: dict[str, Served] = {
            "/robots.txt": "User-agent: *\nDisallow: /private",
            "/": linking("/private/a", "/a", "/b"),
            "/a": linking("/private/c"),
            "/b": redirect("/private/d"),
            "/private/d": "secret",
        }
        async with website(pages) as site:
            found, complete = await crawl_site(site, depth=2)
            assert loaded(found) == ["/", "/a"]
            assert complete
            assert not {"/private/a", "/private/c"} & set(site.paths)
            with pytest.raises(FetchError, match=r"was not read: the robots.txt of 127.0.0.1 disallows it"):
                await crawl_site(site, "/private/x")
            site.pages["/robots.txt"] = Answer(status=500)
            with pytest.raises(FetchError, match=r"robots.txt of 127.0.0.1 could not be read"):
                await crawl_site(site)

    async def test_only_so_many_pages(self) -> None:
        pages: dict[str, Served] = {"/": linking(*(f"/{n}" for n in range(9))), **{f"/{n}": str(n) for n in range(9)}}
        async with website(pages) as site:
            for depth in (1, 2):
                found, complete = await crawl_site(site, depth=depth, policy=WebPolicy(allow_private=True, max_pages=4))
                assert (len(found), complete) == (4, False)
            wide = WebPolicy(allow_private=True, max_pages=10, pages_per_second=1000)
            found, complete = await crawl_site(site, policy=wide)
            assert (len(found), complete) == (10, True)

    async def test_a_page_that_fails(self) -> None:
        pages: dict[str, Served] = {"/": linking("/a", "/b", "/gone"), "/a": Answer(status=500), "/b": "b"}
        async with website(pages) as site:
            for depth, complete in ((1, True), (2, False)):
                found, was_complete = await crawl_site(site, depth=depth)
                assert loaded(found) == ["/", "/b"]
                assert "the server answered 500" in str(found["/a"])
                # Whose links are unknown, so that the listing is not whole.
                assert was_complete is complete

    @pytest.mark.parametrize("depth", [0, 1])
    async def test_a_start_that_is_not_there(self, depth: int) -> None:
        async with website({"/broken": Answer(status=500)}) as site:
            for path, said in (("/typo", "There is no page at"), ("/broken", "answered 500")):
                try:
                    found, _ = await crawl_site(site, path, depth)
                    message = str(found[path])
                except FetchError as error:
                    message = str(error)
                assert said in message

    @pytest.mark.parametrize("url", ["ftp://example.com/", "http://a:b@example.com/", "nothing"])
    async def test_what_is_no_address(self, url: str) -> None:
        async with WebClient(FAST) as client:
            for source in (SiteSource, SitemapSource):
                with pytest.raises(ReadableError):
                    source(Visitor(client), url, "site")


class TestManners:
    async def test_no_faster_than_allowed(self) -> None:
        pages: dict[str, Served] = {"/": linking("/a", "/b", "/c"), "/a": "a", "/b": "b", "/c": "c"}
        async with website(pages) as site:
            began = time.monotonic()
            await crawl_site(site, policy=WebPolicy(allow_private=True, pages_per_second=10))
            assert time.monotonic() - began >= 0.3
            site.pages["/robots.txt"] = "User-agent: *\nCrawl-delay: 0.2"
            began = time.monotonic()
            await crawl_site(site)
            assert time.monotonic() - began >= 0.6

    async def test_a_busy_server_is_asked_later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(visiting, "_FIRST_PAUSE", 0.05)
        times: list[float] = []

        def answer(asked: Asked) -> Answer:
            times.append(time.monotonic())
            headers = {"retry-after": "0"} if len(times) == 2 else {}
            return Answer(status=429, headers=headers) if len(times) < 3 else Answer(b"<p>at last</p>")

        async with website({"/": answer}) as site:
            found, _ = await crawl_site(site, depth=0)
        assert loaded(found) == ["/"]
        assert times[1] - times[0] >= 0.05

    async def test_but_not_for_ever(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(visiting, "_FIRST_PAUSE", 0.01)
        busy: dict[str, Served] = {
            "/": Answer(status=503),
            "/hours": Answer(status=503, headers={"retry-after": "7200"}),
        }
        async with website(busy) as site:
            for path, times in (("/", 3), ("/hours", 1)):
                found, _ = await crawl_site(site, path, depth=0)
                assert "the server is busy (503)" in str(found[path])
                assert site.paths.count(path) == times


class TestSitemaps:
    async def test_pages_of_sitemaps_of_sitemaps(self) -> None:
        async with website({}) as site:
            site.pages |= {
                "/sitemap.xml": sitemap_of("{site}/one.xml.gz", "{site}/two.xml", "{site}/sitemap.xml"),
                "/one.xml.gz": Answer(gzip.compress(sitemap(site.url("/a"), site.url("/b#part")).encode())),
                "/two.xml": "<urlset><url><loc>{site}/b</loc></url><url><loc>{site}/c</loc>"
                "<lastmod>2026-11-16</lastmod></url><url><loc>{site}/gone</loc></url></urlset>",
                **{f"/{name}": name for name in "abc"},
            }
            found, complete = await crawl_sitemap(site)
        assert loaded(found) == ["/a", "/b", "/c"]
        assert found["/gone"] == Absent()
        assert isinstance(found["/c"], LoadedItem)
        assert found["/c"].updated == datetime(2026, 11, 16, tzinfo=UTC)
        assert complete
        assert site.paths.count("/sitemap.xml") == 1

    async def test_pages_that_it_may_not_list(self) -> None:
        async with website({"/a": "a", "/private/b": "b", "/c": "c"}) as site, website({"/d": "d"}) as other:
            elsewhere = other.url("/d", host="localhost")
            site.pages["/robots.txt"] = "User-agent: *\nDisallow: /private"
            site.pages["/sitemap.xml"] = sitemap(
                site.url("/a"), site.url("/private/b"), elsewhere, "ftp://x/", "http://10.0.0.1.evil.invalid/"
            )
            found, complete = await crawl_sitemap(site)
            assert (loaded(found), complete) == (["/a"], True)
            assert other.asked == []
            found, _ = await crawl_sitemap(site, policy=FAST.allowing(["localhost"]))
            assert loaded(found) == ["/a", elsewhere]

    async def test_pages_that_lead_away(self) -> None:
        async with website({"/login": "log in"}) as other, website({"/a": "a"}) as site:
            site.pages["/b"] = redirect(other.url("/login", host="localhost"))
            site.pages["/c"] = redirect("/a")
            site.pages["/sitemap.xml"] = sitemap(*(site.url(f"/{name}") for name in "abc"))
            found, _ = await crawl_sitemap(site)
        assert loaded(found) == ["/a"]
        assert "it redirects to another host, localhost" in str(found["/b"])
        assert found["/c"] == Absent()

    async def test_only_so_many_pages(self) -> None:
        async with website({}) as site:
            site.pages["/sitemap.xml"] = sitemap(*(site.url(f"/{number}") for number in range(9)))
            for most, complete in ((9, True), (8, False)):
                found, was_complete = await crawl_sitemap(
                    site, policy=WebPolicy(allow_private=True, max_pages=most, pages_per_second=1000)
                )
                assert (len(found), was_complete) == (most, complete)

    async def test_one_that_is_broken_hides_only_its_own(self) -> None:
        parts = sitemap_of("{site}/gone.xml", "{site}/text.xml", "{site}/good.xml")
        async with website({"/sitemap.xml": parts, "/a": "a"}) as site:
            site.pages |= {"/text.xml": "text", "/good.xml": sitemap(site.url("/a"))}
            found, complete = await crawl_sitemap(site)
            assert (loaded(found), complete) == (["/a"], False)
            del site.pages["/good.xml"]
            with pytest.raises(FetchError, match=r"lists no page that can be read: .*There is no page at .*gone.xml"):
                await crawl_sitemap(site)

    @pytest.mark.parametrize(
        ("pages", "said"),
        [
            ({}, "There is no page at"),
            ({"/sitemap.xml": "<html></html>"}, "is not a sitemap"),
            ({"/sitemap.xml": "<urlset/>"}, "lists no page that can be read."),
            ({"/sitemap.xml": sitemap("https://other.invalid/")}, "other.invalid is another host; --allow-host"),
            ({"/sitemap.xml": sitemap("ftp://x/")}, "only addresses with http:// or https://"),
        ],
    )
    async def test_one_that_lists_nothing(self, pages: dict[str, Served], said: str) -> None:
        async with website(pages) as site:
            with pytest.raises((FetchError, SitemapError)) as raised:
                await crawl_sitemap(site)
        assert said in str(raised.value)

    async def test_robots_that_cannot_be_read_remove_nothing(self) -> None:
        async with website({"/robots.txt": Answer(status=500)}) as site:
            site.pages["/sitemap.xml"] = sitemap(site.url("/a"))
            with pytest.raises(FetchError, match=r"robots.txt of 127.0.0.1 could not be read"):
                await crawl_sitemap(site)


class TestIngest:
    """Through the engine, into a store."""

    async def ingest(self, site: Website, store: SqliteKnowledgeStore, depth: int) -> IngestReport:
        async with WebClient(FAST) as client:
            return await ingest(SiteSource(Visitor(client), site.url(), "site", depth), store, None)

    @pytest.mark.parametrize("depth", [1, 2])
    async def test_again_and_again(self, tmp_path: Path, depth: int) -> None:
        pages: dict[str, Served] = {
            "/": unchanging(f"<main><h1>Start</h1>{linking('/a', '/b', '/c')}</main>"),
            **{f"/{name}": unchanging(f"<main><h1>Page {name}</h1><p>About {name}.</p></main>") for name in "abc"},
        }
        store = await asyncio.to_thread(SqliteKnowledgeStore, tmp_path / "knowledge.db")
        async with website(pages) as site:
            first = await self.ingest(site, store, depth)
            assert (first.added, first.failed, first.complete) == (4, (), True)
            kept = store.document(document_id("site", site.url("/a")))
            assert kept is not None
            assert (kept.title, kept.link) == ("Page a", site.url("/a"))

            again = await self.ingest(site, store, depth)
            assert (again.unchanged, again.added, again.updated, again.removed) == (4, 0, 0, 0)

            site.pages["/a"] = unchanging("<main><h1>Page a</h1><p>Changed.</p></main>", '"two"')
            site.pages["/b"] = Answer(status=500)
            del site.pages["/c"]
            third = await self.ingest(site, store, depth)
            assert (third.updated, third.unchanged, len(third.failed)) == (1, 1, 1)
            # Where a page with links cannot be read, it is unknown which pages are gone.
            assert third.removed == (1 if depth == 1 else 0)
            assert document_id("site", site.url("/b")) in store.versions("site")
        await asyncio.to_thread(store.close)
