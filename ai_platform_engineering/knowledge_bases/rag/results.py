"""Search filters and results, as models and REST callers see them."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from ai_platform_engineering.knowledge_bases.rag.stores.store import Scope


class Filters(BaseModel):
    """Limits a search to one document, to a prefix of the path, or to documents that changed after a time."""

    model_config = ConfigDict(extra="forbid")

    document_id: str | None = None
    path_prefix: str | None = None
    updated_after: datetime | None = None

    def scope(self, datasource: str | None) -> Scope:
        since = self.updated_after
        if since is not None and since.tzinfo is None:
            since = since.replace(tzinfo=UTC)
        return Scope(datasource, self.document_id, self.path_prefix, since)


class SearchResult(BaseModel):
    """A chunk of a document. `snippet` shows the words that matched in their context."""

    document_id: str
    title: str
    section: str
    datasource: str
    link: str
    score: float
    snippet: str
    updated: datetime | None = None


class SearchResults(BaseModel):
    """The best result first. `note` describes a limitation of this search, for example that vectors are missing."""

    query: str
    results: list[SearchResult]
    note: str | None = None
