"""What a search gives back, in the shape in which models and REST callers see it."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

from ai_platform_engineering.knowledge_bases.rag.stores.store import Scope


class Filters(BaseModel):
    """Narrows a search down: to a document, to those whose path begins so, to those that have changed since."""

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
    """A place in a document. `snippet` shows the words that matched in their context."""

    document_id: str
    title: str
    section: str
    datasource: str
    link: str
    score: float
    snippet: str
    updated: datetime | None = None


class SearchResults(BaseModel):
    """The best first. `note` says what a reader should know about this search, for example that vectors are missing."""

    query: str
    results: list[SearchResult]
    note: str | None = None
