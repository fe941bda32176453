"""Pages of strangers are read in another process, which pays for what they do to it."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ai_platform_engineering.knowledge_bases.rag.chunked_text import chunk_content
from ai_platform_engineering.knowledge_bases.rag.readers.reading import UnreadableDocumentError
from ai_platform_engineering.knowledge_bases.rag.web import reader_pool as apart_module
from ai_platform_engineering.knowledge_bases.rag.web import reader_process as reader_module
from ai_platform_engineering.knowledge_bases.rag.web.reader_pool import ReaderPool
from tests.knowledge_bases.rag_servers import rag_server
from tests.knowledge_bases.websites import website
from tests.mcp.support import descendants

pytestmark = pytest.mark.process

PAGE = b"<main><h1>Deploy</h1><p>Use the <a href='pipeline'>pipeline</a>.</p></main>"
ENDLESS = b"<table><tr><td>" * 200_000
SUBSTITUTIONS = (
    "".join(f".. |{level}| replace:: {f'|{level + 1}| ' * 10}\n" for level in range(20))
    + ".. |20| replace:: word\n\n|0|\n"
).encode()
NAME = "https://docs.example.com/a"


async def read(readers: ReaderPool, content: bytes = PAGE) -> str:
    return (await readers.read(content, "text/html", NAME, NAME)).text


def children(of: int | None = None) -> list[Path]:
    """The processes that read pages for a process."""
    found = sorted(process for process, command in descendants(of).items() if "reader_main" in command)
    return [Path("/proc", str(process)) for process in found]


def soon(true: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


async def test_pages_are_read_and_cut_as_they_are_here_by_one_process() -> None:
    async with ReaderPool(60) as readers:
        assert children() == []
        assert await read(readers) == "# Deploy\n\nUse the [pipeline](https://docs.example.com/pipeline).\n"
        first = children()
        assert len(first) == 1
        for text in ("# A\n\none\n\n## B\n\ntwo ✓", "", "é \u2028 \U0001f600"):
            asked = (text.encode(), "text/markdown", "a.md", None)
            assert await readers.chunk(*asked) == chunk_content(*asked)
        assert children() == first
    assert children() == []


async def test_a_page_that_would_take_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    beats, began = 0, time.monotonic()

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    async with ReaderPool(1.5) as readers:
        beating = asyncio.create_task(beat())
        with pytest.raises(UnreadableDocumentError, match=r"converting it to text takes longer than 1\.5 seconds"):
            await read(readers, ENDLESS)
        beating.cancel()
        assert time.monotonic() - began < 60
        # Everybody else went on in the meantime.
        assert beats > 20
        # The next page has another process, whose start may take longer than that on a busy machine.
        monkeypatch.setattr(readers, "_timeout", 60)
        assert "pipeline" in await read(readers)


async def test_a_text_that_would_take_hours_to_cut() -> None:
    async with ReaderPool(1.5) as readers:
        with pytest.raises(UnreadableDocumentError, match=r"takes longer than 1\.5 seconds"):
            await readers.chunk(SUBSTITUTIONS, "text/x-rst", "guide", None)


async def test_several_at_once_and_no_more() -> None:
    async with ReaderPool(60, size=2) as readers:
        await asyncio.gather(*(read(readers) for _ in range(6)))
        assert len(children()) == 2


async def test_a_process_is_replaced_when_it_has_read_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart_module, "MAX_PAGES", 2)
    async with ReaderPool(60) as readers:
        seen = []
        for _ in range(3):
            await read(readers)
            seen.append(children())
    assert (len(seen[0]), seen[1], len(seen[2])) == (1, [], 1)
    assert seen[0] != seen[2]


async def test_an_idle_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart_module, "IDLE_SECONDS", 0.05)
    async with ReaderPool(60) as readers:
        await read(readers)
        await asyncio.to_thread(soon, lambda: not children())
        assert "pipeline" in await read(readers)


async def test_a_process_that_becomes_idle_for_too_long_while_the_pool_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = reader_module.ReaderProcess.end

    async def end_slowly(reader: reader_module.ReaderProcess) -> None:
        await asyncio.sleep(0.3)
        await end(reader)

    async with ReaderPool(60, size=2) as readers:
        await asyncio.gather(read(readers), read(readers))
        monkeypatch.setattr(apart_module, "IDLE_SECONDS", 0.1)
        await asyncio.gather(read(readers), read(readers))
        monkeypatch.setattr(reader_module.ReaderProcess, "end", end_slowly)
    await asyncio.to_thread(soon, lambda: not children())


async def test_one_that_died_between_two_pages_is_replaced() -> None:
    async with ReaderPool(60) as readers:
        await read(readers)
        os.kill(int(children()[0].name), signal.SIGKILL)
        # The event loop has to notice it, too.
        await asyncio.to_thread(soon, lambda: not any(reader.alive for reader in readers._idle))
        assert "pipeline" in await read(readers)


async def test_it_has_no_secrets_little_memory_and_ends_with_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none-of-its-business")
    async with ReaderPool(60) as readers:
        reading = asyncio.create_task(read(readers, ENDLESS))
        await asyncio.to_thread(soon, children)
        (process,) = children()
        limited = str(2 * 1024**3)
        await asyncio.to_thread(soon, lambda: limited in (process / "limits").read_text())
        environment = (process / "environ").read_bytes()
        assert b"PYTHONPATH" in environment
        assert b"sk-none" not in environment
        (memory,) = [line for line in (process / "limits").read_text().splitlines() if "address space" in line]
        assert memory.split()[3] == limited
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert children() == []


@pytest.mark.parametrize("code", ["import os; os.abort()", "print(); input()", "import time; time.sleep(60)"])
async def test_one_that_does_not_do_its_work_is_reported(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "_COMMAND", (sys.executable, "-c", code))
    monkeypatch.setattr(reader_module, "_START_SECONDS", 1.0)
    async with ReaderPool(60) as readers:
        with pytest.raises(UnreadableDocumentError, match=r"was not read: it could not be converted to text\.$"):
            await read(readers)


def process_in_which(function: str, does: str) -> tuple[str, ...]:
    """The command of a process in which a function of its main module does something else."""
    module = "ai_platform_engineering.knowledge_bases.rag.web.reader_main"
    return (sys.executable, "-c", f"import {module} as main\nmain.{function} = lambda *_: {does}\nmain.main()")


async def test_the_time_for_a_page_begins_after_the_import_of_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = tmp_path / "imported"
    monkeypatch.setattr(reader_module, "_COMMAND", process_in_which("load_reader", f"open({str(imported)!r}, 'w')"))
    timeout, limits = asyncio.timeout, list[tuple[float | None, bool]]()

    def recorded(seconds: float | None) -> asyncio.Timeout:
        limits.append((seconds, imported.exists()))
        return timeout(seconds)

    monkeypatch.setattr(asyncio, "timeout", recorded)
    async with ReaderPool(60) as readers:
        await read(readers)
    assert limits[-1] == (60, True)


async def test_what_goes_wrong_inside_is_logged_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reader_module, "_COMMAND", process_in_which("read", "1 / 0"))
    async with ReaderPool(60) as readers:
        with caplog.at_level(logging.ERROR), pytest.raises(UnreadableDocumentError) as raised:
            await read(readers)
        assert "ZeroDivisionError" in caplog.text
        assert str(raised.value) == f"{NAME} was not read: it could not be converted to text."
        assert len(children()) == 1


async def test_a_page_that_takes_all_memory_has_only_its_own_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_module, "_COMMAND", process_in_which("read", "bytearray(3 * 1024**3)"))
    async with ReaderPool(60) as readers:
        with pytest.raises(UnreadableDocumentError, match=r"it could not be converted to text\.$"):
            await read(readers)
        assert children() == []


SITEMAP = "<urlset>" + "".join(f"<url><loc>{{site}}/{page}</loc></url>" for page in ("a", "b", "c")) + "</urlset>"
SITE = {"/sitemap.xml": SITEMAP, "/a": PAGE.decode(), "/b": ENDLESS.decode(), "/c": "<h1>Last</h1><p>The stork.</p>"}
OPTIONS = {
    "EMBEDDINGS_PROVIDER": "none",
    "FETCH_URL_ALLOW_PRIVATE": "true",
    "FETCH_URL_TIMEOUT": "4",
    "INGEST_PAGES_PER_SECOND": "1000",
}


def ingesting(folder: Path, url: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ai_platform_engineering.cli", "ingest", url, "--json"],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "DATA_DIR": str(folder), **OPTIONS, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_an_ingest_goes_on_after_a_page_that_cannot_be_read_in_time(tmp_path: Path) -> None:
    async with website(SITE) as site:
        output, _ = await asyncio.to_thread(ingesting(tmp_path, site.url("/sitemap.xml")).communicate, timeout=120)
    report = json.loads(output)
    assert report["added"] == 2
    ((path, reason),) = [failure.values() for failure in report["failed"]]
    assert path == site.url("/b")
    assert reason == (f"{path} was not read: converting it to text takes longer than 4 seconds (FETCH_URL_TIMEOUT).")


async def test_no_process_is_left_behind_by_one_that_was_killed(tmp_path: Path) -> None:
    async with website(SITE) as site:
        # So much time that nothing but the end of its caller ends it.
        process = ingesting(tmp_path, site.url("/b"), FETCH_URL_TIMEOUT="600")
        await asyncio.to_thread(soon, lambda: children(process.pid))
        (reader,) = children(process.pid)
        await asyncio.to_thread(soon, lambda: _seconds_of(reader) > 1)
        process.kill()
        await asyncio.to_thread(process.communicate)
        await asyncio.to_thread(soon, lambda: not reader.exists() or _is_dead(reader), 5)


def _seconds_of(process: Path) -> float:
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _is_dead(process: Path) -> bool:
    """Also if its result is not awaited."""
    return (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"


async def test_rest_goes_on_meanwhile_and_says_what_was_not_read(tmp_path: Path) -> None:
    async with website(SITE) as site, rag_server(tmp_path, **OPTIONS) as http:
        place = "/rag/v1/datasources/notes/documents"
        job = (await http.post("/rag/v1/ingest", json={"url": site.url("/sitemap.xml")})).headers["location"]
        bad, good = await asyncio.gather(
            http.put(f"{place}/bad.rst", content=SUBSTITUTIONS),
            http.put(f"{place}/good.md", content=b"# Good\n\nThe heron."),
        )
        assert [answer.status_code for answer in (bad, good)] == [422, 201]
        assert "takes longer than 4 seconds" in bad.json()["detail"]
        async with asyncio.timeout(90):
            while not (state := (await http.get(job)).json())["finished"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert (state["state"], state["result"]["added"], state["result"]["failed"]) == ("succeeded", 2, 1)
        assert "takes longer than 4 seconds" in state["result"]["failures"][0]["reason"]
