"""Which store the settings ask for."""

from __future__ import annotations

from pathlib import Path

from ai_platform_engineering.knowledge_bases.rag.stores.store import Store
from ai_platform_engineering.settings import Settings


def knowledge_file(settings: Settings) -> Path:
    return settings.data_dir / "knowledge.db"


def open_store(settings: Settings) -> Store:
    """Opened and ready, or a `StoreError`. Blocks: call it through a thread."""
    if settings.rag_database_url is not None:
        from ai_platform_engineering.knowledge_bases.rag.stores.postgres_store import PostgresStore  # noqa: PLC0415

        return PostgresStore(settings.rag_database_url.get_secret_value())
    from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteStore  # noqa: PLC0415

    return SqliteStore(knowledge_file(settings))
