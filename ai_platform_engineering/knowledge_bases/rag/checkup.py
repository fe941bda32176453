"""The check of the knowledge base for `platform-engineer doctor`: its location, size and problems."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.documents import Datasource
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.redact import redact

_NAME: Final = "knowledge base"


@dataclass(frozen=True, slots=True)
class Checkup:
    """`note` is a limitation, `problem` the reason why the knowledge base cannot be used."""

    where: str
    documents: int | None = None
    note: str | None = None
    problem: str | None = None

    def __str__(self) -> str:
        counted = {None: "", 0: ", nothing ingested yet", 1: ", 1 document"}
        return self.where + counted.get(self.documents, f", {self.documents} documents")


def store_row(settings: Settings, found: Checkup) -> StoreCheckup:
    """The row of the store in the report."""
    if settings.rag_server_url is not None:
        row = StoreCheckup(_NAME, "server", found.where)
    elif settings.rag_database_url is not None:
        row = StoreCheckup(_NAME, "postgres", _postgres_place(settings.rag_database_url.get_secret_value()))
    else:
        from ai_platform_engineering.knowledge_bases.rag.stores.opening import knowledge_file  # noqa: PLC0415

        row = StoreCheckup.of_file(_NAME, knowledge_file(settings))
        if not row.exists:
            return row
    if found.problem is not None:
        return row.failed(found.problem)
    return row.opened(documents=found.documents or 0)


def _postgres_place(url: str) -> str:
    """Without credentials; the name of the setting if the address cannot be parsed."""
    try:
        from ai_platform_engineering.knowledge_bases.rag.stores.postgres_schema import (  # noqa: PLC0415
            KnowledgeBaseAddress,
        )

        return KnowledgeBaseAddress(url).place
    except (ReadableError, ModuleNotFoundError):
        return "RAG_DATABASE_URL"


async def check_up(settings: Settings) -> Checkup | None:
    """None if the knowledge base is disabled."""
    if not settings.enable_rag:
        return None
    if settings.rag_server_url is not None:
        return await _remote(settings, settings.rag_server_url)
    return await asyncio.to_thread(_local, settings)


async def _remote(settings: Settings, url: str) -> Checkup:
    from ai_platform_engineering.knowledge_bases.rag.remote import RemoteKnowledgeBase  # noqa: PLC0415

    where = redact(url)
    try:
        async with asyncio.timeout(settings.mcp_start_timeout):
            datasources = await RemoteKnowledgeBase(settings, url).datasources()
    except TimeoutError:
        late = f"did not answer within {settings.mcp_start_timeout:g} seconds"
        return Checkup(where, problem=f"The knowledge base at {where} (RAG_SERVER_URL) {late}.")
    except ReadableError as error:
        return Checkup(where, problem=str(error))
    return Checkup(where, _documents(datasources))


def _local(settings: Settings) -> Checkup:
    from ai_platform_engineering.knowledge_bases.rag.embeddings.choice import embedder_of, why_none  # noqa: PLC0415
    from ai_platform_engineering.knowledge_bases.rag.stores.opening import knowledge_file, open_store  # noqa: PLC0415

    where = "in-process" if settings.rag_database_url is None else "in-process, stored in Postgres"
    try:
        note = why_none(settings)
        embedder_of(settings)
    except ReadableError as error:
        note = f"Search is by keywords alone: {error}"
    if settings.rag_database_url is None and not knowledge_file(settings).exists():
        return Checkup(where, 0, note)
    try:
        store = open_store(settings)
    except ReadableError as error:
        return Checkup(where, note=note, problem=str(error))
    try:
        return Checkup(where, _documents(store.datasources()), note)
    except ReadableError as error:
        return Checkup(where, note=note, problem=str(error))
    finally:
        store.close()


def _documents(datasources: list[Datasource]) -> int:
    return sum(datasource.documents for datasource in datasources)
