"""`platform-engineer ingest` as people run it: in a process of its own, killed, interrupted, started again."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from ai_platform_engineering.cli.ingest import IngestOptions, IngestRefusedError, run_ingest
from ai_platform_engineering.knowledge_bases.rag.embeddings.offline import OfflineEmbedder
from ai_platform_engineering.knowledge_bases.rag.results import SearchResults
from ai_platform_engineering.knowledge_bases.rag.searching import search
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import Scope
from ai_platform_engineering.settings import load_settings
from tests.knowledge_bases.websites import Answer, Served, Website, unchanging, website
from tests.servers import Command, Completed

DOCUMENTS = 60
HELD_BACK = 30
# Everything that is kept, without the numbers that tell in which order it came.
CONTENTS = (
    "SELECT name, origin FROM datasource ORDER BY name",
    "SELECT id, datasource, path, title, link, updated_us, fingerprint, revision, text FROM document "
    "JOIN document_text ON document_text.document = document.number ORDER BY id",
    "SELECT document.id, place, section, text FROM chunk JOIN document ON document.number = chunk.document "
    "ORDER BY document.id, place",
    "SELECT document.id, place, model.name, body FROM vector JOIN chunk ON chunk.number = vector.chunk "
    "JOIN document ON document.number = chunk.document JOIN model ON model.number = vector.model "
    "ORDER BY document.id, place",
)


@pytest.fixture
def ingest(platform_engineer: Command) -> Command:
    return partial(platform_engineer, "ingest")


@pytest.fixture
async def handbook(environ: dict[str, str]) -> AsyncIterator[Website]:
    """A site that does not answer for its last pages, so that no ingest of it can end before `release`."""
    environ |= {"FETCH_URL_ALLOW_PRIVATE": "true", "FETCH_URL_TIMEOUT": "300", "INGEST_PAGES_PER_SECOND": "1000"}
    listed = "".join(f"<url><loc>{{site}}/{number}.md</loc></url>" for number in range(DOCUMENTS))
    pages: dict[str, Served] = {f"/{number}.md": handbook_page(number) for number in range(DOCUMENTS - HELD_BACK)}
    async with website({"/sitemap.xml": f"<urlset>{listed}</urlset>", **pages}) as site:
        for number in range(DOCUMENTS - HELD_BACK, DOCUMENTS):
            site.pages[f"/{number}.md"] = Answer(stalls=True)
        yield site


def handbook_page(number: int) -> Answer:
    text = f"# Service {number}\n\nService {number} is run by team {number % 7}; page them before a restart.\n"
    if number == 20:
        text = "# Rollback\n\n## Database\n\nRestore the last snapshot.\n\n## Code\n\nRevert it.\n"
    return Answer(text.encode(), headers={"content-type": "text/markdown"})


def release(handbook: Website) -> None:
    handbook.pages |= {f"/{number}.md": handbook_page(number) for number in range(DOCUMENTS)}


@pytest.fixture
def ingest_handbook(ingest: Command, handbook: Website) -> Callable[..., Awaitable[Completed]]:
    return partial(asyncio.to_thread, ingest, handbook.url("/sitemap.xml"), "--datasource", "handbook")


@pytest.fixture
async def running(
    tmp_path: Path, environ: dict[str, str], handbook: Website
) -> AsyncIterator[asyncio.subprocess.Process]:
    """An ingest of the handbook that has kept some documents and waits for others."""
    process = await asyncio.create_subprocess_exec(
        *command(handbook.url("/sitemap.xml"), "--datasource", "handbook"),
        env=environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            while not documents_in(tmp_path / "data"):
                assert process.returncode is None
                await asyncio.sleep(0.005)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "ai_platform_engineering.cli", "ingest", *map(str, arguments)]


def without_progress(said: str) -> list[str]:
    """The lines on standard error, without those that a slow machine adds."""
    return [
        line for line in said.splitlines() if not re.fullmatch(r"[\d,]+( of [\d,]+)? documents, [\d,]+ chunks", line)
    ]


def documents_in(data: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{data / 'knowledge.db'}?mode=ro", uri=True)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM document").fetchone()
            return int(count)
    except sqlite3.OperationalError:
        return 0


def contents(data: Path) -> list[list[tuple[object, ...]]]:
    with closing(sqlite3.connect(data / "knowledge.db")) as connection:
        (state,) = connection.execute("PRAGMA integrity_check").fetchone()
        assert state == "ok"
        connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        return [connection.execute(query).fetchall() for query in CONTENTS]


def searched(data: Path, *queries: str) -> list[SearchResults]:
    with closing(SqliteKnowledgeStore(data / "knowledge.db")) as store:
        return [search(store, OfflineEmbedder(), query, 10, Scope()) for query in queries]


async def test_an_ingest_killed_half_way_and_started_again_gives_the_index_of_one_run(
    running: asyncio.subprocess.Process,
    ingest_handbook: Callable[..., Awaitable[Completed]],
    handbook: Website,
    tmp_path: Path,
) -> None:
    running.send_signal(signal.SIGKILL)
    await running.communicate()
    release(handbook)
    half, one = tmp_path / "data", tmp_path / "one"
    before = documents_in(half)

    again = await ingest_handbook("--json")
    assert (again.returncode, again.stderr) == (0, "")  # no progress beside JSON
    report = json.loads(again.stdout)
    assert (report["added"], report["unchanged"], report["updated"]) == (DOCUMENTS - before, before, 0)

    assert (await ingest_handbook(DATA_DIR=str(one))).returncode == 0
    assert contents(half) == contents(one)
    assert len(contents(one)[3]) == DOCUMENTS + 1
    queries = ("how do I undo a release?", "service 7", "whom do I call before restarting service 31?")
    found = searched(half, *queries)
    assert found == searched(one, *queries)
    assert found[0].results[0].document_id == f"handbook:{handbook.url('/20.md')}"


async def test_an_interrupted_ingest_says_that_the_same_command_goes_on(
    running: asyncio.subprocess.Process,
    ingest_handbook: Callable[..., Awaitable[Completed]],
    handbook: Website,
    tmp_path: Path,
) -> None:
    running.send_signal(signal.SIGINT)
    output, said = await asyncio.wait_for(running.communicate(), 90)
    assert (running.returncode, output) == (130, b"")
    said_in_the_end = "Interrupted. Ingested documents are stored; the same command continues from there."
    assert without_progress(said.decode()) == [said_in_the_end]
    before = documents_in(tmp_path / "data")
    assert 0 < before <= DOCUMENTS - HELD_BACK

    release(handbook)
    report = json.loads((await ingest_handbook("--json")).stdout)
    assert (report["added"], report["unchanged"]) == (DOCUMENTS - before, before)


def test_what_changed_is_brought_in_and_what_is_gone_is_removed(ingest: Command, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# Deploy\n\nUse the pipeline.\n")
    (docs / "b.rst").write_text("Rollback\n========\n\nRevert it.\n")
    (docs / "c.html").write_text("<title>Alerts</title><main><p>Page the team.</p></main>")
    (docs / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    first = ingest("docs")
    assert first.returncode == 1
    assert first.stdout.startswith("docs: 3 added, 1 failed; 3 chunks in ")
    (problem,) = without_progress(first.stderr)
    assert problem.startswith("broken.pdf: ")

    (docs / "broken.pdf").unlink()
    (docs / "a.md").write_text("# Deploy\n\nUse the new pipeline.\n")
    (docs / "c.html").unlink()
    second = ingest("docs")
    assert (second.returncode, without_progress(second.stderr)) == (0, [])
    assert second.stdout.startswith("docs: 1 updated, 1 unchanged, 1 removed; 1 chunks in ")


class TestLinkBase:
    @pytest.fixture
    def docs(self, tmp_path: Path) -> Path:
        docs = tmp_path / "docs"
        (docs / "guides").mkdir(parents=True)
        (docs / "guides" / "deploy.md").write_text("# Deploy\n\nUse the pipeline.\n")
        (docs / "100% sure? #1 é.md").write_text("# Sure\n\nIt is.\n")
        (docs / "next.html").write_text('<main><h1>Next</h1><p>Then <a href="guides/deploy.md">deploy</a>.</p></main>')
        return docs

    def test_is_where_links_begin_and_can_change(self, ingest: Command, docs: Path, tmp_path: Path) -> None:
        def links() -> set[str]:
            return {str(document[4]) for document in contents(tmp_path / "data")[1]}

        assert ingest(docs).returncode == 0
        assert links() == {file.as_uri() for file in docs.rglob("*.*")}

        moved = ingest(docs, "--link-base", "https://git.example.com/team a/docs/")
        assert (moved.returncode, without_progress(moved.stderr)) == (0, [])
        assert moved.stdout.startswith("docs: 3 updated; ")
        base = "https://git.example.com/team%20a/docs"
        assert links() == {
            f"{base}/guides/deploy.md",
            f"{base}/100%25%20sure%3F%20%231%20%C3%A9.md",
            f"{base}/next.html",
        }
        assert f"[deploy]({base}/guides/deploy.md)" in str(contents(tmp_path / "data")[1])
        (found,) = searched(tmp_path / "data", "pipeline")
        assert found.results[0].link == f"{base}/guides/deploy.md"

        same = ingest(docs, "--link-base", f"{base}")
        assert same.stdout.startswith("docs: 3 unchanged; ")
        back = ingest(docs)
        assert back.stdout.startswith("docs: 3 updated; ")
        assert links() == {file.as_uri() for file in docs.rglob("*.*")}

    def test_of_a_single_file(self, ingest: Command, docs: Path, tmp_path: Path) -> None:
        assert ingest(docs / "guides" / "deploy.md", "--link-base", "http://wiki").returncode == 0
        assert [document[4] for document in contents(tmp_path / "data")[1]] == ["http://wiki/deploy.md"]

    @pytest.mark.parametrize(
        "value", ["ftp://git.example.com/", "docs", "", "https://", "https://a.b/?p=", "http://a/#x", "//a/b"]
    )
    def test_that_is_none_is_refused(self, value: str, docs: Path, tmp_path: Path) -> None:
        settings = load_settings({"DATA_DIR": str(tmp_path)}, env_file=None)
        with pytest.raises(
            IngestRefusedError, match=re.escape(f"--link-base={value} cannot be used as the beginning of links")
        ):
            run_ingest(IngestOptions(str(docs), link_base=value), settings)

    def test_with_a_password_is_refused_and_not_shown(self, ingest: Command, docs: Path) -> None:
        completed = ingest(docs, "--link-base", "https://me:secret@git.example.com/")
        assert (completed.returncode, completed.stdout) == (2, "")
        assert completed.stderr.startswith("platform-engineer: --link-base=https://")
        assert "without user name, query and fragment" in completed.stderr
        assert "secret" not in completed.stderr

    def test_is_not_for_pages(self, ingest: Command) -> None:
        completed = ingest("https://docs.example.com/", "--link-base", "https://git.example.com/")
        assert (completed.returncode, completed.stdout) == (2, "")
        assert completed.stderr == (
            "platform-engineer: --link-base is for folders and files; a web page has its own address.\n"
        )


def test_without_embeddings_it_is_said_plainly(ingest: Command, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\none")
    completed = ingest("a.md", "--datasource", "notes", EMBEDDINGS_PROVIDER="none")
    assert completed.returncode == 0
    assert completed.stdout.startswith("notes: 1 added; ")
    assert completed.stderr.startswith("Search is by keywords alone, because EMBEDDINGS_PROVIDER=none")


def test_a_terminal_gets_a_bar_and_a_pipe_the_result(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "[red]a.md").write_text("# A\n\none")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(tmp_path / "[red]a.md"),
        env={**environ, "EMBEDDINGS_PROVIDER": "none", "TERM": "xterm", "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # how Linux says that the other end was closed
        pass
    finally:
        os.close(ours)
    output, _ = process.communicate(timeout=90)
    assert output.startswith("red-a.md: 1 added; ")
    assert b"1/1" in shown
    assert b"[red]a.md" in shown


def test_nothing_to_ingest_is_said(ingest: Command, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    completed = ingest("code", EMBEDDINGS_PROVIDER="offline")
    assert completed.returncode == 0
    assert "has no documents of a supported type: .md, " in completed.stderr
    assert completed.stdout.startswith("code: nothing; 0 chunks in ")


def test_a_store_that_cannot_be_used_is_an_error_and_not_a_refusal(ingest: Command, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("one")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "knowledge.db").write_text("not a database, but long enough to be taken for one" * 100)
    completed = ingest("a.md")
    assert (completed.returncode, completed.stdout) == (1, "")
    assert completed.stderr.startswith("platform-engineer: ")
    assert "knowledge.db" in completed.stderr
    assert "Traceback" not in completed.stderr


class TestRefusals:
    def test_exit_with_2_and_a_sentence(self, ingest: Command) -> None:
        completed = ingest("nowhere")
        assert (completed.returncode, completed.stdout) == (2, "")
        assert completed.stderr == (
            "platform-engineer: There is no file or folder 'nowhere'. Name one, or a page or a sitemap at http:// or "
            "https://.\n"
        )

    @pytest.mark.parametrize(
        ("options", "variables", "reason"),
        [
            (IngestOptions("ftp://docs.example/"), {}, "no file or folder 'ftp://docs.example/'"),
            (IngestOptions("/", datasource="a b"), {}, "'a b' cannot be the name of a datasource"),
            (IngestOptions("/", depth=1), {}, "--depth, --max-pages and --allow-host are for addresses"),
            (IngestOptions("/"), {"RAG_SERVER_URL": "http://127.0.0.1:8010/mcp"}, "where that server runs"),
            (IngestOptions("/"), {"EMBEDDINGS_PROVIDER": "openai"}, "EMBEDDINGS_PROVIDER=openai needs OPENAI_API_KEY"),
        ],
    )
    def test_name_what_cannot_be_meant(
        self, options: IngestOptions, variables: dict[str, str], reason: str, tmp_path: Path
    ) -> None:
        settings = load_settings({**variables, "DATA_DIR": str(tmp_path)}, env_file=None)
        with pytest.raises(IngestRefusedError, match=reason):
            run_ingest(options, settings)

    def test_a_datasource_keeps_what_it_has(self, ingest: Command, tmp_path: Path) -> None:
        for folder in ("one/docs", "other/docs"):
            (tmp_path / folder).mkdir(parents=True)
            (tmp_path / folder / "a.md").write_text(f"# {folder}")
        assert ingest("one/docs", EMBEDDINGS_PROVIDER="none").returncode == 0
        completed = ingest("other/docs", EMBEDDINGS_PROVIDER="none")
        assert (completed.returncode, completed.stdout) == (2, "")
        assert "Choose another name with --datasource" in completed.stderr


class TestAddresses:
    @pytest.fixture
    def environ(self, tmp_path: Path) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "DATA_DIR": str(tmp_path / "data"),
            "EMBEDDINGS_PROVIDER": "none",
            "FETCH_URL_ALLOW_PRIVATE": "true",
            "INGEST_PAGES_PER_SECOND": "1000",
        }

    async def test_a_sitemap_is_read_and_only_what_changed_the_next_time(self, ingest: Command) -> None:
        listing = "<urlset><url><loc>{site}/a</loc></url><url><loc>{site}/b</loc></url></urlset>"
        pages: dict[str, Served] = {
            "/sitemap.xml": listing,
            "/a": unchanging("<h1>A</h1><p>one"),
            "/b": "<h1>B</h1><p>two",
        }
        async with website(pages) as site:
            first = await asyncio.to_thread(ingest, site.url("/sitemap.xml"), "--json")
            second = await asyncio.to_thread(ingest, site.url("/sitemap.xml"), "--json")
        report = json.loads(first.stdout)
        assert (first.returncode, report["datasource"], report["added"]) == (0, "127.0.0.1", 2)
        report = json.loads(second.stdout)
        assert (second.returncode, report["added"], report["unchanged"]) == (0, 0, 2)

    async def test_a_page_is_read_with_what_is_below_it(self, ingest: Command, tmp_path: Path) -> None:
        pages = {
            "/guide/": '<h1>Guide</h1><a href="a">A</a> <a href="/other">other</a>',
            "/guide/a": "<h1>A</h1><p>one",
            "/other": "<h1>Other</h1>",
        }
        async with website(pages) as site:
            completed = await asyncio.to_thread(ingest, site.url("/guide/"), "--depth", 1, "--datasource", "guide")
            cut = await asyncio.to_thread(
                ingest, site.url("/guide/"), "--depth", 1, "--max-pages", 1, "--datasource", "guide"
            )
        assert completed.stdout.startswith("guide: 2 added; ")
        assert cut.returncode == 0
        assert cut.stderr.endswith("--max-pages or INGEST_MAX_PAGES raises the number of pages.\n")
        assert documents_in(tmp_path / "data") == 2

    async def test_a_sitemap_is_known_by_what_is_in_it(self, ingest: Command) -> None:
        listing = '<?xml version="1.0"?>\n<urlset xmlns="x"><url><loc>{site}/a</loc></url></urlset>'
        async with website({"/pages": listing, "/a": "<h1>A</h1><p>one"}) as site:
            completed = await asyncio.to_thread(ingest, site.url("/pages"), "--datasource", "site")
        assert completed.stdout.startswith("site: 1 added; ")
        assert site.paths == ["/robots.txt", "/pages", "/a"]

    @pytest.mark.parametrize("depth", [0, 1])
    async def test_a_page_is_asked_for_once_and_known_again(self, depth: int, ingest: Command) -> None:
        async with website({"/docs/": unchanging('<h1>Docs</h1><p>one <a href="/docs/">here</a>')}) as site:
            first = await asyncio.to_thread(ingest, site.url("/docs/"), "--depth", depth, "--json")
            assert site.paths == ["/robots.txt", "/docs/"]
            second = await asyncio.to_thread(ingest, site.url("/docs/"), "--depth", depth, "--json")
        assert json.loads(first.stdout)["added"] == 1
        assert json.loads(second.stdout)["unchanged"] == 1

    async def test_a_private_address_is_refused_unless_it_is_allowed(self, ingest: Command) -> None:
        async with website({"/": "<h1>Inside</h1>"}) as site:
            completed = await asyncio.to_thread(ingest, site.url(), FETCH_URL_ALLOW_PRIVATE="false")
        assert (completed.returncode, completed.stdout) == (1, "")
        assert "FETCH_URL_ALLOW_PRIVATE" in completed.stderr
        assert site.asked == []
