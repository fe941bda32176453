from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from pathlib import Path

import pytest

from ai_platform_engineering.knowledge_bases.rag.readers.reading import UnreadableError
from ai_platform_engineering.knowledge_bases.rag.web import apart
from ai_platform_engineering.knowledge_bases.rag.web.client import WebClient
from ai_platform_engineering.knowledge_bases.rag.web.pages import ReadPage, read_page
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.knowledge_bases.rag.web.transport import FetchError
from ai_platform_engineering.utils.errors import ReadableError
from tests.knowledge_bases.websites import Answer, Page, redirect, website

ANYWHERE = WebPolicy(allow_private=True, timeout=5)
HTML = """<html><head><title>Deploy</title></head><body><nav><a href="/">Home</a></nav><main><h1>Deploy it</h1>
<p>Read <a href="next">on</a>.</p><script>var no = 1</script></main></body></html>"""


async def read(answer: Page, path: str = "/") -> ReadPage:
    async with website({path: answer}) as site, WebClient(ANYWHERE) as client:
        found = await read_page(client, site.url(path))
    assert found.url == site.url(path)
    return found


async def test_a_page_without_what_is_around_it() -> None:
    async with website({"/": redirect("/docs/"), "/docs/": HTML}) as site, WebClient(ANYWHERE) as client:
        found = await read_page(client, site.url())
    assert (found.url, found.title) == (site.url("/docs/"), "Deploy it")
    assert found.text == f"# Deploy it\n\nRead [on]({site.url('/docs/next')}).\n"


@pytest.mark.parametrize(
    ("path", "told", "text"),
    [
        ("/a", "text/markdown", "# Title\n\nText.\n"),
        ("/a.md", "text/plain", "# Title\n\nText.\n"),
        ("/a.md", "application/octet-stream", "# Title\n\nText.\n"),
        ("/a", "text/plain", "Title\n\nText.\n"),
    ],
)
async def test_other_kinds(path: str, told: str, text: str) -> None:
    found = await read(Answer(text.encode(), headers={"content-type": told}), path)
    assert "Title" in found.title
    assert "Text." in found.text


@pytest.mark.parametrize(
    ("told", "content"),
    [
        ("text/html; charset=iso-8859-1", "<main><p>Café — naïve</p></main>".encode("cp1252")),
        ("text/html; charset=utf-8", "<main><p>Café — naïve</p></main>".encode("cp1252")),
        ("text/html; charset=nonsense", "<main><p>Café — naïve</p></main>".encode()),
        ("text/html", '<meta charset="shift_jis"><main><p>日本語</p></main>'.encode("shift_jis")),
    ],
)
async def test_charsets_also_where_they_are_wrong(told: str, content: bytes) -> None:
    found = await read(Answer(content, headers={"content-type": told}))
    assert "Café — naïve" in found.text or "日本語" in found.text


async def test_what_has_no_text() -> None:
    for answer in (
        Answer(b"\x89PNG\r\n", headers={"content-type": "image/png"}),
        Answer(b"%PDF-1.4 broken", headers={"content-type": "application/pdf"}),
        Answer(b"<html></html>"),
    ):
        with pytest.raises(UnreadableError, match="http://127"):
            await read(answer)
    with pytest.raises(FetchError, match=re.escape("There is no page at http://127.0.0.1")):
        await read(Answer(status=404))


@pytest.mark.parametrize("piece", ["<table><tr><td>", "<a ", "<!--a"])
async def test_a_page_that_would_take_hours(piece: str) -> None:
    policy = WebPolicy(allow_private=True, timeout=1.5)
    beats, began = 0, time.monotonic()

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    async with website({"/": piece * 200_000}) as site, WebClient(policy) as client:
        beating = asyncio.create_task(beat())
        with pytest.raises(UnreadableError, match=r"to turn it into text takes longer than 1\.5 seconds"):
            await read_page(client, site.url())
        beating.cancel()
    assert time.monotonic() - began < 10
    # Everybody else went on in the meantime.
    assert beats > 20


async def test_what_reads_a_page_has_no_secrets_and_ends_with_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-of-its-business")
    async with website({"/": "<table><tr><td>" * 200_000}) as site, WebClient(ANYWHERE) as client:
        reading = asyncio.create_task(read_page(client, site.url()))
        environment = await asyncio.to_thread(_environment_of_reader)
        assert b"PYTHONPATH" in environment
        assert b"sk-none" not in environment
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert _readers() == []


def _environment_of_reader() -> bytes:
    while not (readers := _readers()):
        time.sleep(0.02)
    return (readers[0] / "environ").read_bytes()


def _readers() -> list[Path]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [
        folder
        for child in children
        if b"apart_main" in (folder := Path("/proc", child)).joinpath("cmdline").read_bytes()
    ]


async def test_no_kind_told_is_taken_for_a_web_page() -> None:
    assert (await read(Answer(HTML.encode(), headers={"content-type": ""}))).title == "Deploy it"


async def test_every_refusal_is_a_sentence() -> None:
    async with WebClient(WebPolicy()) as client:
        for url in ("http://127.0.0.1/", "file:///etc/passwd", "nothing", "http://a:b@c/", "http://nothing.invalid/"):
            with pytest.raises(ReadableError, match=r"\.$"):
                await read_page(client, url)


async def test_a_reader_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_COMMAND", (sys.executable, "-c", "import os; os.abort()"))
    with pytest.raises(UnreadableError, match=r"was not read: it could not be turned into text\.$"):
        await read(HTML)
