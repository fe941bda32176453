from __future__ import annotations

import asyncio
import gzip
import ipaddress
import re
import time
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.installation import product_version
from ai_platform_engineering.knowledge_bases.rag.web.client import FetchError, Gone, NotModified, WebClient, WebPage
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.utils.outbound.addresses import Address
from ai_platform_engineering.utils.outbound.transport import CheckedTransport
from tests.knowledge_bases.websites import (
    Answer,
    OneIsPublic,
    Website,
    certificate,
    redirect,
    talking,
    unchanging,
    website,
)

ANYWHERE = WebPolicy(allow_private=True, timeout=60, max_bytes=100_000)
PUBLIC = OneIsPublic(timeout=60)


class Names:
    """A DNS whose answers change: each name gets the next of its answers, and keeps the last."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self.answers = {name.replace("_", "."): list(given) for name, given in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, name: str) -> Sequence[Address]:
        self.asked.append(name)
        given = self.answers.get(name, [[]])
        return [ipaddress.ip_address(address) for address in (given.pop(0) if len(given) > 1 else given[0])]


async def fetch(url: str, revision: str | None = None, policy: WebPolicy = ANYWHERE) -> WebPage | NotModified | Gone:
    async with WebClient(policy) as client:
        return await client.fetch(url, revision)


async def page(url: str, policy: WebPolicy = ANYWHERE) -> WebPage:
    found = await fetch(url, policy=policy)
    assert isinstance(found, WebPage)
    return found


def refused(text: str) -> Any:
    return pytest.raises(FetchError, match=re.escape(text))


class TestPages:
    async def test_a_page_and_its_metadata(self) -> None:
        headers = {"content-type": "text/plain; charset=latin-1", "last-modified": "Mon, 16 Nov 2026 10:00:00 GMT"}
        async with website({"/a?b=1": Answer("é".encode("latin-1"), headers=headers)}) as site:
            found = await page(site.url("/a?b=1#part"))
        assert found == WebPage(
            url=site.url("/a?b=1"),
            content=b"\xe9",
            media_type="text/plain; charset=latin-1",
            revision="modified Mon, 16 Nov 2026 10:00:00 GMT",
            updated=datetime(2026, 11, 16, 10, tzinfo=UTC),
        )
        assert site.asked[0].headers["user-agent"] == f"platform-engineer/{product_version()}"
        assert "text/html" in site.asked[0].headers["accept"]

    async def test_a_page_that_has_not_changed_is_not_sent_again(self) -> None:
        async with website({"/": unchanging("text")}) as site:
            first = await page(site.url())
            assert (first.content, first.revision) == (b"text", 'etag "one"')
            assert await fetch(site.url(), first.revision) == NotModified()
            assert isinstance(await fetch(site.url(), 'etag "other"'), WebPage)
            assert "if-none-match" not in site.asked[0].headers
            assert "if-modified-since" not in site.asked[1].headers

    async def test_by_its_time_where_it_has_no_tag(self) -> None:
        time_of_change = "Mon, 16 Nov 2026 10:00:00 GMT"
        async with website({"/": Answer(status=304, headers={"content-length": ""})}) as site:
            assert await fetch(site.url(), f"modified {time_of_change}") == NotModified()
            assert site.asked[0].headers["if-modified-since"] == time_of_change.lower()

    @pytest.mark.parametrize("revision", ["", "etag", "etag \r\nX-Injected: yes", "etag \u00e9", "strange value"])
    async def test_a_revision_that_is_not_ours_is_not_sent(self, revision: str) -> None:
        async with website({"/": "text"}) as site:
            assert isinstance(await fetch(site.url(), revision), WebPage)
            assert not {"if-none-match", "x-injected"} & site.asked[0].headers.keys()

    @pytest.mark.parametrize("status", [404, 410])
    async def test_one_that_is_gone(self, status: int) -> None:
        async with website({"/": Answer(b"sorry", status)}) as site:
            assert await fetch(site.url()) == Gone()

    @pytest.mark.parametrize(
        ("status", "said"),
        [
            (304, "the server answered 304 Reason"),
            (401, "denies access without credentials (401)"),
            (403, "denies access without credentials (403)"),
            (418, "the server answered 418 Reason"),
            (429, "the server is busy (429). Try again later."),
            (500, "the server answered 500 Reason"),
            (302, "the server answered 302 Reason"),
        ],
    )
    async def test_other_answers_are_reported(self, status: int, said: str) -> None:
        async with website({"/": Answer(status=status)}) as site:
            with refused(said) as raised:
                await fetch(site.url())
        assert raised.value.status == status

    async def test_when_to_come_back(self) -> None:
        later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
        pages = {
            "/seconds": Answer(status=503, headers={"retry-after": "7"}),
            "/time": Answer(status=503, headers={"retry-after": later}),
            "/nothing": Answer(status=503, headers={"retry-after": "soon"}),
        }
        async with website(pages) as site:
            waits = {}
            for path in pages:
                with refused("busy") as raised:
                    await fetch(site.url(path))
                waits[path] = raised.value.retry_after
        assert waits["/seconds"] == 7
        assert waits["/time"] == pytest.approx(60, abs=3)
        assert waits["/nothing"] is None

    @pytest.mark.parametrize("date", ["soon", "Fri, 31 Dec 9999 23:59:59 -1400", "99 99 9999"])
    async def test_a_time_that_is_none(self, date: str) -> None:
        async with website({"/": Answer(b"text", headers={"last-modified": date, "etag": 'W/"1"'})}) as site:
            found = await page(site.url())
        assert (found.updated, found.revision) == (None, 'etag W/"1"')


class TestRedirects:
    async def test_they_are_followed_to_the_end(self) -> None:
        pages = {"/": redirect("a/b"), "/a/b": redirect("../c?d#e", 308), "/c?d": "here"}
        async with website(pages) as site:
            found = await page(site.url())
        assert (found.url, found.content) == (site.url("/c?d"), b"here")

    async def test_but_not_for_ever(self) -> None:
        async with website({"/": redirect("/")}) as site:
            with refused("redirects more than 5 times"):
                await fetch(site.url())
            assert len(site.asked) == 6

    @pytest.mark.parametrize(
        "to", ["file:///etc/passwd", "ftp://127.0.0.1/", "http://me:hunter2@127.0.0.1/", "http://["]
    )
    async def test_nor_to_what_is_no_page(self, to: str) -> None:
        async with website({"/": redirect(to)}) as site:
            with refused("redirects elsewhere: ") as raised:
                await fetch(site.url())
        assert "hunter2" not in str(raised.value)

    async def test_each_is_judged_like_a_first_address(self) -> None:
        async with website({"/": "secret"}, host="127.0.0.2") as inside:
            ways = (
                inside.url(),
                f"http://localhost.localdomain.:{inside.port}/",
                f"http://[::ffff:127.0.0.2]:{inside.port}/",
                f"http://2130706434:{inside.port}/",
                f"http://0x7f.2:{inside.port}/",
                "http://169.254.169.254/latest/meta-data/",
                "http://10.0.0.1/",
            )
            async with website({f"/{number}": redirect(way) for number, way in enumerate(ways)}) as outside:
                for path in outside.pages:
                    with pytest.raises(FetchError, match=r"was not contacted|has no address"):
                        await fetch(outside.url(path), policy=PUBLIC)
                assert len(outside.asked) == len(ways)
            assert inside.asked == []

    async def test_an_allowed_host_cannot_send_elsewhere(self) -> None:
        policy = WebPolicy(allow_private=True, allowed_hosts=("localhost",))
        async with website({"/": "secret"}) as other, website({"/": redirect(other.url())}) as allowed:
            with refused("127.0.0.1 was not contacted: it is not one of the hosts that FETCH_URL_ALLOWED_HOSTS allows"):
                await fetch(allowed.url(host="localhost"), policy=policy)
            assert other.asked == []


class TestAddresses:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.1", "2130706433", "[::ffff:7f00:1]"])
    async def test_private_ones_are_refused_however_they_are_written(self, host: str) -> None:
        async with website({"/": "secret"}) as site:
            with refused("a loopback address; FETCH_URL_ALLOW_PRIVATE=true allows it"):
                await fetch(site.url(host=host), policy=WebPolicy())
            assert site.asked == []

    async def test_metadata_is_refused_where_private_ones_are_allowed(self) -> None:
        with refused("169.254.169.254 was not contacted: it is the metadata service of a cloud"):
            await fetch("http://169.254.169.254/latest/meta-data/")

    async def test_a_name_that_changes_its_address_gains_nothing(self) -> None:
        names = Names(site_test=[["127.0.0.1"], ["127.0.0.2"]])
        async with (
            website({"/": "public"}) as outside,
            website({"/": "secret"}, host="127.0.0.2", port=outside.port) as inside,
            WebClient(PUBLIC, transport=CheckedTransport(PUBLIC, names)) as client,
        ):
            url = outside.url(host="site.test")
            first = await client.fetch(url)
            assert isinstance(first, WebPage)
            assert first.content == b"public"
            assert outside.asked[0].headers["host"] == f"site.test:{outside.port}"
            assert names.asked == ["site.test"]
            with refused("site.test (127.0.0.2) was not contacted: it is a loopback address"):
                await client.fetch(url)
            assert inside.asked == []

    async def test_of_several_addresses_only_those_that_may_be_reached_are(self) -> None:
        names = Names(site_test=[["127.0.0.2", "10.0.0.1", "127.0.0.1"]])
        async with (
            website({"/": "public"}) as outside,
            website({"/": "secret"}, host="127.0.0.2", port=outside.port),
            WebClient(PUBLIC, transport=CheckedTransport(PUBLIC, names)) as client,
        ):
            found = await client.fetch(outside.url(host="site.test"))
        assert isinstance(found, WebPage)
        assert found.content == b"public"

    async def test_the_next_address_is_tried(self) -> None:
        names = Names(site_test=[["127.0.0.7", "127.0.0.1"]])
        async with (
            website({"/": "text"}) as site,
            WebClient(ANYWHERE, transport=CheckedTransport(ANYWHERE, names)) as client,
        ):
            assert isinstance(await client.fetch(site.url(host="site.test")), WebPage)

    async def test_no_server_there(self, unused_port: int) -> None:
        with refused("could not be read: connection refused"):
            await fetch(f"http://127.0.0.1:{unused_port}/")
        async with WebClient(ANYWHERE, transport=CheckedTransport(ANYWHERE, Names())) as client:
            with refused("nothing.test has no address"):
                await client.fetch("http://nothing.test/")

    async def test_no_proxy_comes_in_between(self, monkeypatch: pytest.MonkeyPatch, unused_port: int) -> None:
        for variable in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{unused_port}")
        async with website({"/": "text"}) as site:
            assert isinstance(await fetch(site.url()), WebPage)

    async def test_certificates_are_of_the_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        context, trusted = certificate(tmp_path, "site.test")
        names = Names(site_test=[["127.0.0.1"]], other_test=[["127.0.0.1"]])
        async with website(
            {"/": "safe", "/kept": Answer(b"", headers={"connection": "keep-alive"})}, context=context
        ) as site:
            url = f"https://site.test:{site.port}/"
            async with WebClient(ANYWHERE, transport=CheckedTransport(ANYWHERE, names)) as client:
                with refused("its TLS certificate is not trusted"):
                    await client.fetch(url)
            monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
            async with WebClient(ANYWHERE, transport=CheckedTransport(ANYWHERE, names)) as client:
                assert isinstance(await client.fetch(url), WebPage)
                # A connection that was opened for one name is open at the address of the other.
                assert isinstance(await client.fetch(f"{url}kept"), WebPage)
                with refused("its TLS certificate is not trusted"):
                    await client.fetch(f"https://other.test:{site.port}/kept")


class TestLimits:
    async def test_the_largest_page(self) -> None:
        packed = gzip.compress(b"x" * 100_000)
        pages = {"/": Answer(b"x" * 100_000), "/packed": Answer(packed, headers={"content-encoding": "gzip"})}
        async with website(pages) as site:
            for path in pages:
                assert len((await page(site.url(path))).content) == 100_000

    @pytest.mark.parametrize(
        "answer",
        [
            Answer(b"x" * 100_001),
            Answer(b"x" * 50_001, endless=True),
            Answer(b"x", headers={"content-length": "100001"}),
            Answer(gzip.compress(b"x" * 100_001), headers={"content-encoding": "gzip"}),
            Answer(gzip.compress(bytes(50_000_000)), headers={"content-encoding": "gzip"}),
            Answer(zlib.compress(bytes(50_000_000)), headers={"content-encoding": "deflate"}),
        ],
        ids=["one byte", "endless", "by its length", "packed", "gzip bomb", "deflate bomb"],
    )
    async def test_larger_ones_are_given_up(self, answer: Answer) -> None:
        async with website({"/": answer}) as site:
            began = time.monotonic()
            with refused("it is larger than 100000 bytes (FETCH_URL_MAX_BYTES)"):
                await fetch(site.url())
        assert time.monotonic() - began < 15

    @pytest.mark.parametrize("tail", [zlib.compress(b"text"), zlib.compress(b"text")[2:-4]], ids=["wrapped", "bare"])
    async def test_deflated_in_either_way(self, tail: bytes) -> None:
        async with website({"/": Answer(tail, headers={"content-encoding": "deflate"})}) as site:
            assert (await page(site.url())).content == b"text"

    @pytest.mark.parametrize(
        ("body", "packing"),
        [(b"text", "gzip"), (gzip.compress(b"text" * 99, mtime=0)[:-9], "gzip"), (b"text", "deflate"), (b"text", "br")],
    )
    async def test_what_cannot_be_unpacked(self, body: bytes, packing: str) -> None:
        async with website({"/": Answer(body, headers={"content-encoding": packing})}) as site:
            with refused("its content cannot be decompressed"):
                await fetch(site.url())

    @pytest.mark.parametrize(
        "answer",
        [Answer(b"begin", stalls=True), Answer(b"begin", headers={"content-length": "900"}, stalls=True)],
        ids=["no end", "too short"],
    )
    async def test_slow_ones_are_given_up(self, answer: Answer) -> None:
        async with website({"/": answer}) as site:
            began = time.monotonic()
            with refused("it takes longer than 0.3 seconds, which is FETCH_URL_TIMEOUT"):
                await fetch(site.url(), policy=WebPolicy(allow_private=True, timeout=0.3))
        assert time.monotonic() - began < 15

    async def test_the_time_is_for_everything_together(self) -> None:
        """Each byte that drips in is in time."""
        policy = WebPolicy(allow_private=True, timeout=0.4)

        async def drip(request: bytes, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
            while True:
                writer.write(b".")
                await writer.drain()
                await asyncio.sleep(0.05)

        async with talking(drip) as port:
            with refused("it takes longer than 0.4 seconds"):
                await fetch(f"http://127.0.0.1:{port}/", policy=policy)

    async def test_a_name_that_takes_too_long(self) -> None:
        async def never(name: str) -> Sequence[Address]:
            await asyncio.sleep(60)
            return []

        policy = WebPolicy(timeout=0.2)
        async with WebClient(policy, transport=CheckedTransport(policy, never)) as client:
            with refused("it takes longer than 0.2 seconds"):
                await client.fetch("http://site.test/")

    @pytest.mark.parametrize("said", [b"", b"hello\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort"])
    async def test_what_does_not_speak_http(self, said: bytes) -> None:
        async def speak(request: bytes, writer: asyncio.StreamWriter) -> None:
            writer.write(said)

        async with talking(speak) as port:
            with refused("the connection was closed without an answer"):
                await fetch(f"http://127.0.0.1:{port}/")


async def test_many_at_once() -> None:
    pages = {f"/{number}": f"page {number}" for number in range(50)}
    site: Website
    async with website(pages) as site, WebClient(ANYWHERE) as client:
        found = await asyncio.gather(*(client.fetch(site.url(path)) for path in pages))
    assert [page.content.decode() for page in found if isinstance(page, WebPage)] == list(pages.values())
