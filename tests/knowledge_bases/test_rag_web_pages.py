from __future__ import annotations

import re

import pytest

from ai_platform_engineering.knowledge_bases.rag.readers.reading import UnreadableDocumentError
from ai_platform_engineering.knowledge_bases.rag.web.client import FetchError, PageText, WebClient, read_page
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.knowledge_bases.rag.web.reader_pool import ReaderPool
from ai_platform_engineering.utils.errors import ReadableError
from tests.knowledge_bases.websites import Answer, Served, redirect, website

pytestmark = pytest.mark.process

ANYWHERE = WebPolicy(allow_private=True, timeout=60)
HTML = """<html><head><title>Deploy</title></head><body><nav><a href="/">Home</a></nav><main><h1>Deploy it</h1>
<p>Read <a href="next">on</a>.</p><script>var no = 1</script></main></body></html>"""


async def read(answer: Served, path: str = "/") -> PageText:
    async with website({path: answer}) as site, WebClient(ANYWHERE) as client, ReaderPool(ANYWHERE.timeout) as readers:
        found = await read_page(client, readers, site.url(path))
    assert found.url == site.url(path)
    return found


async def test_a_page_without_what_is_around_it() -> None:
    async with (
        website({"/": redirect("/docs/"), "/docs/": HTML}) as site,
        WebClient(ANYWHERE) as client,
        ReaderPool(ANYWHERE.timeout) as readers,
    ):
        found = await read_page(client, readers, site.url())
    assert (found.url, found.title) == (site.url("/docs/"), "Deploy it")
    assert found.text == f"# Deploy it\n\nRead [on]({site.url('/docs/next')}).\n"


@pytest.mark.parametrize(
    ("path", "declared", "text"),
    [
        ("/a", "text/markdown", "# Title\n\nText.\n"),
        ("/a.md", "text/plain", "# Title\n\nText.\n"),
        ("/a.md", "application/octet-stream", "# Title\n\nText.\n"),
        ("/a", "text/plain", "Title\n\nText.\n"),
    ],
)
async def test_other_kinds(path: str, declared: str, text: str) -> None:
    found = await read(Answer(text.encode(), headers={"content-type": declared}), path)
    assert "Title" in found.title
    assert "Text." in found.text


@pytest.mark.parametrize(
    ("declared", "content"),
    [
        ("text/html; charset=iso-8859-1", "<main><p>Café — naïve</p></main>".encode("cp1252")),
        ("text/html; charset=utf-8", "<main><p>Café — naïve</p></main>".encode("cp1252")),
        ("text/html; charset=nonsense", "<main><p>Café — naïve</p></main>".encode()),
        ("text/html", '<meta charset="shift_jis"><main><p>日本語</p></main>'.encode("shift_jis")),
    ],
)
async def test_charsets_also_where_they_are_wrong(declared: str, content: bytes) -> None:
    found = await read(Answer(content, headers={"content-type": declared}))
    assert "Café — naïve" in found.text or "日本語" in found.text


async def test_what_has_no_text() -> None:
    for answer in (
        Answer(b"\x89PNG\r\n", headers={"content-type": "image/png"}),
        Answer(b"%PDF-1.4 broken", headers={"content-type": "application/pdf"}),
        Answer(b"<html></html>"),
    ):
        with pytest.raises(UnreadableDocumentError, match="http://127"):
            await read(answer)
    with pytest.raises(FetchError, match=re.escape("There is no page at http://127.0.0.1")):
        await read(Answer(status=404))


async def test_a_page_without_a_content_type_is_html() -> None:
    assert (await read(Answer(HTML.encode(), headers={"content-type": ""}))).title == "Deploy it"


async def test_every_refusal_is_a_sentence() -> None:
    async with WebClient(WebPolicy()) as client, ReaderPool(5) as readers:
        for url in ("http://127.0.0.1/", "file:///etc/passwd", "nothing", "http://a:b@c/", "http://nothing.invalid/"):
            with pytest.raises(ReadableError, match=r"\.$"):
                await read_page(client, readers, url)
