"""A document that somebody sends, as a source of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from ai_platform_engineering.knowledge_bases.rag.ingest.source import Item, Loaded
from ai_platform_engineering.knowledge_bases.rag.stores.store import Known


@dataclass(frozen=True, slots=True)
class UploadSource:
    """`origin` is that of the datasource, which may have come from elsewhere before."""

    datasource: str
    origin: str
    path: str
    loaded: Loaded
    complete: bool = False  # the rest of the datasource is not listed, and stays

    async def items(self) -> AsyncIterator[Item]:
        yield Item(self.path, self._load)

    async def _load(self, _known: Known | None) -> Loaded:
        return self.loaded
