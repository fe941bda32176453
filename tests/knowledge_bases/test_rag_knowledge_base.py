"""The knowledge base with real parts: what it opens and when, and what it does when a part fails."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ai_platform_engineering.knowledge_bases.rag.backend import Backend
from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import DATASOURCE
from ai_platform_engineering.knowledge_bases.rag.jobs import IngestRequest
from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase, WrongSettingError
from ai_platform_engineering.knowledge_bases.rag.names import (
    DatasourceNameError,
    UnknownDatasourceError,
    UnknownDocumentError,
)
from ai_platform_engineering.knowledge_bases.rag.results import Filters
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStoreError, Scope, Vector
from ai_platform_engineering.settings import load_settings
from tests.knowledge_bases.rag_servers import HANDBOOK, environ_of
from tests.servers import serving

pytestmark = pytest.mark.process


@asynccontextmanager
async def knowledge_base(folder: Path, **more: str) -> AsyncIterator[KnowledgeBase]:
    base = KnowledgeBase(load_settings(environ_of(folder, **more), env_file=None))
    try:
        yield base
    finally:
        await base.aclose()


async def keep_handbook(base: KnowledgeBase) -> None:
    for file in sorted(HANDBOOK.glob("*.md")):
        await base.store_document("handbook", file.name, file.read_bytes(), "text/markdown")


async def found(base: KnowledgeBase, query: str, **more: Any) -> list[str]:
    return [result.document_id for result in (await base.search(query, **more)).results]


async def under_way(base: KnowledgeBase) -> None:
    """Until the documentation is being read."""
    async with asyncio.timeout(90):
        while base._product_docs is None:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_nothing_is_opened_before_it_is_used(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path / "data"):
        pass
    assert not (tmp_path / "data").exists()


async def test_those_who_come_first_open_it_once_and_wait_for_the_documentation(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path, RAG_PRODUCT_DOCS="true") as base:
        searches = [found(base, "how do I run ArgoCD remotely?") for _ in range(5)]
        results, listed = await asyncio.gather(asyncio.gather(*searches), base.datasources())
    assert all(result == results[0] and result for result in results)
    (datasource,) = listed
    assert (datasource.name, datasource.documents > 5) == (DATASOURCE, True)


async def test_a_caller_who_goes_away_does_not_stop_what_others_wait_for(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path, RAG_PRODUCT_DOCS="true") as base:
        first = asyncio.create_task(base.search("supervisor"))
        await under_way(base)
        first.cancel()
        assert await found(base, "supervisor")
        assert first.cancelled()


async def test_two_servers_that_start_at_once_on_one_file(tmp_path: Path) -> None:
    async with (
        knowledge_base(tmp_path, RAG_PRODUCT_DOCS="true") as one,
        knowledge_base(tmp_path, RAG_PRODUCT_DOCS="true") as other,
    ):
        first, second = await asyncio.gather(found(one, "run ArgoCD remotely"), found(other, "run ArgoCD remotely"))
        # In what order is another matter: vectors are still being made while both search.
        assert first[0] in second
        assert second[0] in first
        await one.store_document("notes", "a.md", b"A wombat.", "text/markdown")
        assert await found(other, "wombat") == ["notes:a.md"]


async def test_a_search_that_is_stopped_while_it_opens(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path) as base:
        first = asyncio.create_task(base.search("minute"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        await keep_handbook(base)
        assert await found(base, "minute")
    async with knowledge_base(tmp_path) as base:
        search = asyncio.create_task(base.search("minute"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        search.cancel()


async def test_closing_while_the_documentation_is_read(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path, RAG_PRODUCT_DOCS="true") as base:
        search = asyncio.create_task(base.search("supervisor"))
        await under_way(base)
    with suppress(KnowledgeStoreError):
        await asyncio.wait_for(search, 90)
    async with knowledge_base(tmp_path, RAG_PRODUCT_DOCS="true") as base:
        assert await found(base, "supervisor")


async def test_the_documentation_is_found_by_words_while_its_vectors_are_made(tmp_path: Path) -> None:
    class SlowEmbedder:
        name = "slow"
        may_go_on = threading.Event()

        def embed(self, texts: Sequence[str]) -> list[Vector]:
            self.may_go_on.wait(30)
            return [[1.0, 0.0] for _ in texts]

        def embed_query(self, text: str) -> Vector:
            return [1.0, 0.0]

    embedder = SlowEmbedder()
    backend = Backend(SqliteKnowledgeStore(tmp_path / "knowledge.db"), embedder, None, None)
    searchable = asyncio.Event()
    docs = asyncio.create_task(backend.ingest_product_docs(searchable.set))
    try:
        await asyncio.wait_for(searchable.wait(), 90)
        early = backend.search("run ArgoCD remotely", 3, Scope())
        assert early.results
        assert "keywords alone" in (early.note or "")
        assert not docs.done()
    finally:
        embedder.may_go_on.set()
        await docs
    assert backend.search("run ArgoCD remotely", 3, Scope()).note is None
    await backend.aclose()


async def test_documentation_that_cannot_be_read_is_logged_and_fails_no_search(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with knowledge_base(tmp_path) as base:
        await base.store_document(DATASOURCE, "mine.md", b"# Mine\n\nA walrus.", "text/markdown")
    async with knowledge_base(tmp_path, RAG_PRODUCT_DOCS="true") as base:
        with caplog.at_level(logging.ERROR):
            assert await found(base, "walrus") == [f"{DATASOURCE}:mine.md"]
            assert await found(base, "walrus") == [f"{DATASOURCE}:mine.md"]
    assert len([record for record in caplog.records if "documentation of the product" in record.message]) == 1


async def test_without_vectors_it_is_said(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path) as base:
        await keep_handbook(base)
        assert "EMBEDDINGS_PROVIDER=none" in ((await base.search("release")).note or "")


async def test_meaning_finds_what_words_do_not(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path, EMBEDDINGS_PROVIDER="offline") as base:
        await keep_handbook(base)
        answer = await base.search("undo a bad deployment")
        assert answer.results[0].document_id == "handbook:rollback.md"
        assert answer.note is None
        assert await found(base, "zebra migration patterns in Kenya") == []


async def test_an_embedder_that_fails_leaves_keywords_and_a_note(tmp_path: Path) -> None:
    broken = {"EMBEDDINGS_PROVIDER": "openai", "OPENAI_API_KEY": "sk-none", "OPENAI_ENDPOINT": "http://127.0.0.1:9/v1"}
    async with knowledge_base(tmp_path, **broken, RAG_PRODUCT_DOCS="true") as base:
        answer = await base.search("DISTRIBUTED_AGENTS")
    assert answer.results
    assert "keywords alone" in (answer.note or "")
    assert "sk-none" not in (answer.note or "")


async def test_a_reranker_orders_results_and_may_be_away(tmp_path: Path) -> None:
    async def prefer_certificates(request: Request) -> Response:
        documents = (await request.json())["documents"]
        scores = [float("Certificates" in text) for text in documents]
        return JSONResponse({"results": [{"index": i, "relevance_score": s} for i, s in enumerate(scores)]})

    app = Starlette(routes=[Route("/rerank", prefer_certificates, methods=["POST"])])
    async with (
        serving(lambda _settings: app, {}) as url,
        knowledge_base(tmp_path, RERANK_URL=f"{url}/rerank") as base,
    ):
        await keep_handbook(base)
        assert (await found(base, "minute"))[0] == "handbook:certificates.md"
    async with knowledge_base(tmp_path, RERANK_URL=f"{url}/rerank") as base:
        answer = await base.search("minute")
        assert len(answer.results) >= 3
        assert "cannot be reached" in (answer.note or "")


async def test_one_document_is_searched_also_by_the_id_of_a_chunk(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path) as base:
        await keep_handbook(base)
        filters = Filters(document_id="handbook:on-call.md#1")
        assert set(await found(base, "minutes", filters=filters)) == {"handbook:on-call.md"}


async def test_unknown_names(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path) as base:
        with pytest.raises(UnknownDatasourceError, match="there are none yet"):
            await base.search("x", datasource="handbook")
        await keep_handbook(base)
        with pytest.raises(UnknownDatasourceError, match="known are handbook"):
            await base.search("x", datasource="Handbook")
        with pytest.raises(UnknownDocumentError, match=r"handbook:on-call\.md"):
            await base.search("x", filters=Filters(document_id="handbook:oncall.md"))
        with pytest.raises(UnknownDocumentError, match=r"handbook:on-call\.md"):
            await base.fetch_document("handbook:docs/on-call.md")
        with pytest.raises(UnknownDatasourceError):
            await base.remove_datasource("nope")
        with pytest.raises(DatasourceNameError):
            await base.store_document("a:b", "c.md", b"x", "text/markdown")


async def test_a_time_without_a_zone_is_utc(tmp_path: Path) -> None:
    assert Filters(updated_after=datetime.fromisoformat("2026-01-02T03:04:05")).scope(None).updated_after == (
        datetime.fromisoformat("2026-01-02T03:04:05+00:00")
    )
    async with knowledge_base(tmp_path) as base:
        await keep_handbook(base)
        assert await found(base, "minute", filters=Filters(updated_after=datetime.fromisoformat("2001-01-01")))


async def test_limits_are_kept_to(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path) as base:
        await keep_handbook(base)
        assert len(await found(base, "minute", limit=-1)) == 1
        assert len(await found(base, "minute", limit=10**9)) >= 3


async def test_a_store_that_breaks_is_an_error_and_never_an_empty_result(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path) as base:
        await keep_handbook(base)
        with sqlite3.connect(tmp_path / "knowledge.db") as other:
            other.execute("DROP TABLE chunk")
        other.close()
        with pytest.raises(KnowledgeStoreError, match=r"knowledge\.db"):
            await base.search("minute")


async def test_a_wrong_setting_for_the_web_is_reported_when_it_matters(tmp_path: Path) -> None:
    async with knowledge_base(tmp_path, FETCH_URL_ALLOWED_HOSTS="https://example.com/") as base:
        assert await base.datasources() == []
        with pytest.raises(WrongSettingError, match="FETCH_URL_ALLOWED_HOSTS"):
            await base.fetch_url("https://example.com/")
        with pytest.raises(WrongSettingError, match="FETCH_URL_ALLOWED_HOSTS"):
            await base.start_ingest(IngestRequest(url="https://example.com/"))
