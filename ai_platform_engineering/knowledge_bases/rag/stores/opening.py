"""Which store the settings ask for."""

from __future__ import annotations

from pathlib import Path

from ai_platform_engineering.knowledge_bases.rag.stores.store import Store, StoreError
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.extras import install_command


def knowledge_file(settings: Settings) -> Path:
    return settings.data_dir / "knowledge.db"


def open_store(settings: Settings) -> Store:
    """Opened and ready, or a `StoreError`. Blocks: call it through a thread."""
    if settings.rag_database_url is not None:
        try:
            from ai_platform_engineering.knowledge_bases.rag.stores.postgres_store import PostgresStore  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise StoreError(
                f"RAG_DATABASE_URL needs {error.name}, which is not installed: {install_command('postgres')}. "
                "Without RAG_DATABASE_URL the knowledge base is kept in a file."
            ) from error
        return PostgresStore(settings.rag_database_url.get_secret_value())
    from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteStore  # noqa: PLC0415

    return SqliteStore(knowledge_file(settings))
