"""Opens the store that the settings select."""

from __future__ import annotations

from pathlib import Path

from ai_platform_engineering.installation import install_command
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStore, KnowledgeStoreError
from ai_platform_engineering.settings import Settings


def knowledge_file(settings: Settings) -> Path:
    return settings.data_dir / "knowledge.db"


def open_store(settings: Settings) -> KnowledgeStore:
    """Raises a `KnowledgeStoreError` if the store cannot be used. Blocks: call it in a thread."""
    if settings.rag_database_url is not None:
        try:
            from ai_platform_engineering.knowledge_bases.rag.stores.postgres_store import (  # noqa: PLC0415
                PostgresKnowledgeStore,
            )
        except ModuleNotFoundError as error:
            raise KnowledgeStoreError(
                f"RAG_DATABASE_URL needs {error.name}, which is not installed: {install_command('postgres')}. "
                "Without RAG_DATABASE_URL the knowledge base is stored in a file."
            ) from error
        return PostgresKnowledgeStore(settings.rag_database_url.get_secret_value())
    from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore  # noqa: PLC0415

    return SqliteKnowledgeStore(knowledge_file(settings))
