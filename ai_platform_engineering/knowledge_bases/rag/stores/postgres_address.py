"""The address of the knowledge base's Postgres server."""

from __future__ import annotations

import psycopg

from ai_platform_engineering.knowledge_bases.rag.stores.store import StoreError
from ai_platform_engineering.utils.postgres_address import PostgresAddress


class Address(PostgresAddress):
    setting = "RAG_DATABASE_URL"
    purpose = "as the knowledge base"
    error = StoreError
    tables_gone = "Its tables are gone: restart to make them again, then ingest again"

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        try:
            return psycopg.connect(self.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise self.unusable(error) from error
