"""`platform-engineer rag`: searches and lists the knowledge base, in this process or at `RAG_SERVER_URL`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from ai_platform_engineering.cli.exit_codes import fail
from ai_platform_engineering.cli.printing import print_lines, print_note
from ai_platform_engineering.knowledge_bases.rag.documents import Datasource
from ai_platform_engineering.knowledge_bases.rag.knowledge_base import KnowledgeBase
from ai_platform_engineering.knowledge_bases.rag.results import Filters, SearchResult, SearchResults
from ai_platform_engineering.knowledge_bases.rag.views import DatasourcesView
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.text.plain_text import aligned, one_line
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.redact import redact


class RemoteKnowledgeBaseError(ReadableError):
    def __init__(self, url: str) -> None:
        super().__init__(
            f"The knowledge base is at {redact(url)} (RAG_SERVER_URL): remove a datasource where that server runs, or "
            "with DELETE /rag/v1/datasources/NAME of its REST API."
        )


class _SearchableKnowledgeBase(Protocol):
    """A knowledge base in this process or on a server."""

    async def search(
        self, query: str, limit: int = ..., filters: Filters | None = ..., datasource: str | None = ...
    ) -> SearchResults: ...

    async def datasources(self) -> list[Datasource]: ...

    async def aclose(self) -> None: ...


def search(options: argparse.Namespace, settings: Settings) -> int:
    return _run(_search(options, settings))


def list_datasources(options: argparse.Namespace, settings: Settings) -> int:
    return _run(_list_datasources(options, settings))


def remove_datasource(options: argparse.Namespace, settings: Settings) -> int:
    return _run(_remove_datasource(options, settings))


def _run(command: Coroutine[Any, Any, int]) -> int:
    try:
        return asyncio.run(command)
    except ReadableError as error:
        return fail(error)


async def _search(options: argparse.Namespace, settings: Settings) -> int:
    async with _opened(settings) as knowledge_base:
        found = await knowledge_base.search(options.query, options.limit, datasource=options.datasource)
    if options.json:
        print_lines(found.model_dump_json(exclude_none=True, ensure_ascii=True))
        return 0
    for number, result in enumerate(found.results, start=1):
        for line in _shown(number, result):
            print_lines(line)
    if found.note:
        print_note(found.note)
    return 0


async def _list_datasources(options: argparse.Namespace, settings: Settings) -> int:
    async with _opened(settings) as knowledge_base:
        found = await knowledge_base.datasources()
    if options.json:
        for view in DatasourcesView.of(found).datasources:
            print_lines(view.model_dump_json(exclude_none=True, ensure_ascii=True))
        return 0
    for line in aligned([("DATASOURCE", "DOCUMENTS", "CHUNKS", "UPDATED", "ORIGIN"), *map(_row, found)]):
        print_lines(line)
    return 0


async def _remove_datasource(options: argparse.Namespace, settings: Settings) -> int:
    name: str = options.datasource
    if settings.rag_server_url is not None:
        raise RemoteKnowledgeBaseError(settings.rag_server_url)
    knowledge_base = KnowledgeBase(settings)
    try:
        await knowledge_base.remove_datasource(name)
    finally:
        await knowledge_base.aclose()
    print_lines(f"The datasource {name} was removed.")
    return 0


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[_SearchableKnowledgeBase]:
    knowledge_base: _SearchableKnowledgeBase
    if settings.rag_server_url is None:
        knowledge_base = KnowledgeBase(settings)
    else:
        from ai_platform_engineering.knowledge_bases.rag.remote import RemoteKnowledgeBase

        knowledge_base = RemoteKnowledgeBase(settings, settings.rag_server_url)
    try:
        yield knowledge_base
    finally:
        await knowledge_base.aclose()


def _shown(number: int, result: SearchResult) -> Iterator[str]:
    where = one_line(result.section or result.title)
    yield f"{number}. {one_line(result.title)}  {result.score:.2f}" + ("" if where == result.title else f"  {where}")
    yield f"   {one_line(result.snippet)}"
    yield f"   {one_line(result.link)}  [{one_line(result.document_id)}]"
    yield ""


def _row(datasource: Datasource) -> tuple[str, ...]:
    updated = "" if datasource.updated is None else f"{datasource.updated:%Y-%m-%d %H:%M}"
    return datasource.name, str(datasource.documents), str(datasource.chunks), updated, one_line(datasource.origin)
